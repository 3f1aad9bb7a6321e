"""Adds up a number of each worker of TensorFlow."""

import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
resolver = strategy.cluster_resolver


@tf.function
def total() -> tf.Tensor:
    mine = strategy.run(lambda: tf.constant(float(resolver.task_id + 1)))
    return strategy.reduce("SUM", mine, axis=None)


print(f"worker {resolver.task_id} of {strategy.num_replicas_in_sync}, sum {float(total()):g}", flush=True)
