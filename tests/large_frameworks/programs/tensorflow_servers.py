"""Counts on a parameter server, at the chief's order, in the workers."""

import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type == "chief":
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    with strategy.scope():
        counted = tf.Variable(0.0)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    add = tf.function(lambda: counted.assign_add(1.0))
    for _ in range(8):
        coordinator.schedule(add)
    coordinator.join()
    print(f"chief counted {float(counted.numpy()):g} on {counted.device}", flush=True)
else:
    spec = resolver.cluster_spec()
    server = tf.distribute.Server(spec, job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc")
    print(f"{resolver.task_type} {resolver.task_id} serves", flush=True)
    server.join()
