"""Trains one step with DistributedDataParallel and says what it has become; equal weights mean one world."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
model = DistributedDataParallel(torch.nn.Linear(4, 1))
torch.nn.functional.mse_loss(model(torch.randn(8, 4)), torch.zeros(8, 1)).backward()
with torch.no_grad():
    weights = sum(float((each - each.grad).sum()) for each in model.parameters())
line = f"rank {dist.get_rank()} of {dist.get_world_size()} local {os.environ['LOCAL_RANK']} weights {weights:.6f}"
os.write(1, f"{line}\n".encode())  # whole lines, also where two processes share the output
del model  # PyTorch may abort at the end where a model outlives its process group, or its peers leave before it
dist.barrier()
dist.destroy_process_group()
