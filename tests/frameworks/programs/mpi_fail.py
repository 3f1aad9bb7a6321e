"""Meets all others, and fails on the last rank while the others wait for it: `exit` as a program that crashes, `abort`
as MPI would have it.
"""

import os
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
world.barrier()
if world.Get_rank() == world.Get_size() - 1:
    if sys.argv[1] == "exit":
        os._exit(7)
    world.Abort(7)
world.barrier()
