"""Adds up the ranks of Horovod, and says on which node each of them is."""

import os
import socket

import horovod.torch as hvd
import torch

hvd.init()
total = hvd.allreduce(torch.tensor(float(hvd.rank())), op=hvd.Sum).item()
os.write(1, f"rank {hvd.rank()} of {hvd.size()} on {socket.gethostname()}, sum {total:g}\n".encode())
hvd.shutdown()
