"""Adds up the ranks of MPI, and says on which node each of them is."""

import os
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
total = world.allreduce(world.Get_rank())
node = os.environ["MUSTER_NODE"]
sys.stdout.write(f"rank {world.Get_rank()} of {world.Get_size()} on {node}, sum {total}\n")
