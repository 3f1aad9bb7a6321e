"""A rank of a torch job: joins by env://, passes one barrier with gloo, and appends two times to a file.

The times are nanoseconds at its first line, before torch is imported, and after the barrier. Runs in the peers' virtual
environment.
"""

import time

BEGAN = time.time_ns()

import os  # noqa: E402 - the clock is read first
import sys  # noqa: E402 - after the time of the start was taken

import torch.distributed as dist  # noqa: E402 - after the time of the start was taken

dist.init_process_group("gloo", init_method="env://")
dist.barrier()
with os.fdopen(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), "w") as file:
    file.write(f"{BEGAN} {time.time_ns()}\n")
dist.destroy_process_group()
