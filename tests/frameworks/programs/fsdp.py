"""Trains one step with fully sharded weights and says what part of them this rank has."""

import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Linear(4, 8, bias=False)
fully_shard(model, mesh=dist.init_device_mesh("cpu", (dist.get_world_size(),)))
model(torch.ones(2, 4)).sum().backward()
gradient = model.weight.grad.full_tensor().sum().item()
shape = tuple(model.weight.to_local().shape)
line = f"rank {dist.get_rank()} of {dist.get_world_size()} has {shape[0]}x{shape[1]} gradient {gradient:g}"
os.write(1, f"{line}\n".encode())
dist.barrier()
dist.destroy_process_group()
