"""Adds up the ranks of DeepSpeed, and says on which node each of them is."""

import os

import deepspeed
import torch

deepspeed.init_distributed("gloo")
total = torch.ones(1) * torch.distributed.get_rank()
torch.distributed.all_reduce(total)
rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
os.write(1, f"rank {rank} of {size} on {os.environ['MUSTER_NODE']}, sum {total.item():g}\n".encode())
torch.distributed.barrier()
torch.distributed.destroy_process_group()
