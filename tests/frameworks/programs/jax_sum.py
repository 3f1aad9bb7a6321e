"""Joins JAX's processes without an argument, and adds up their numbers."""

import os

import jax

jax.distributed.initialize()

import jax.numpy as jnp  # noqa: E402 - only then may anything of JAX be computed
from jax.experimental import multihost_utils  # noqa: E402 - as above

total = float(multihost_utils.process_allgather(jnp.ones(1) * jax.process_index()).sum())
print(f"process {jax.process_index()} of {jax.process_count()} is rank {os.environ['RANK']}, sum {total:g}", flush=True)
