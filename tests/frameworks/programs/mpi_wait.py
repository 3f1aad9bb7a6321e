"""Meets all others, waits for a file, and meets them again."""

import os
import sys
import time
from pathlib import Path

from mpi4py import MPI

world = MPI.COMM_WORLD
go = Path(sys.argv[1])
world.barrier()
go.with_name(f"pid.{os.getpid()}").touch()
print(f"rank {world.Get_rank()} waits", flush=True)
while not go.exists():
    time.sleep(0.05)
world.barrier()
print(f"rank {world.Get_rank()} has met all", flush=True)
