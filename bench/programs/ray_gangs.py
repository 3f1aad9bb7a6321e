"""A Ray cluster that starts gangs on demand: reads a size per line, answers with milliseconds as JSON.

A gang is a placement group that spreads strictly, an actor on each node, and every actor knowing all addresses. Runs in
the peers' virtual environment.
"""

import json
import sys
import time

import ray
from ray.cluster_utils import Cluster
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy


@ray.remote(num_cpus=1)
class Worker:
    """One of a gang."""

    def __init__(self) -> None:
        self.started = time.time_ns()

    def address(self) -> tuple[int, str]:
        """When it started, and where it is."""
        return self.started, ray.util.get_node_ip_address()

    def learn(self, peers: list[str]) -> tuple[int, int]:
        """When it knew all addresses, and how many."""
        return time.time_ns(), len(peers)


def gang(size: int) -> dict[str, float]:
    """Start one, and end it."""
    began = time.time_ns()
    group = placement_group([{"CPU": 1}] * size, strategy="STRICT_SPREAD")
    ray.get(group.ready(), timeout=120)
    places = [
        PlacementGroupSchedulingStrategy(placement_group=group, placement_group_bundle_index=index)
        for index in range(size)
    ]
    workers = [Worker.options(scheduling_strategy=place).remote() for place in places]
    told = ray.get([worker.address.remote() for worker in workers], timeout=120)
    addresses = [address for _, address in told]
    knew = ray.get([worker.learn.remote(addresses) for worker in workers], timeout=120)
    for worker in workers:
        ray.kill(worker)
    remove_placement_group(group)
    return {
        "started": (max(started for started, _ in told) - began) / 1e6,
        "all addresses": (max(at for at, _ in knew) - began) / 1e6,
    }


def main(nodes: int) -> None:
    """Serve until stdin ends."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(nodes):
        cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20)
    ray.init(address=cluster.address, log_to_driver=False)
    cluster.wait_for_nodes(timeout=180)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(gang(int(line))), flush=True)
    ray.shutdown()
    cluster.shutdown()


main(int(sys.argv[1]))
