"""Says on how many nodes tasks of Ray have run, and where."""

import time

import ray

ray.init(log_to_driver=False)


def where() -> str:
    time.sleep(0.5)
    return str(ray.util.get_node_ip_address())


remote = ray.remote(num_cpus=1)(where)
places = sorted(set(ray.get([remote.remote() for _ in range(8)])))
print(f"{len(ray.nodes())} nodes, tasks on {' '.join(places)}")
