"""A rank of a torch job: joins by env://, passes one barrier with gloo, and appends the time to a file.

Runs in the peers' virtual environment.
"""

import os
import sys
import time

import torch.distributed as dist

dist.init_process_group("gloo", init_method="env://")
dist.barrier()
with os.fdopen(os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), "w") as file:
    file.write(f"{time.time_ns()}\n")
dist.destroy_process_group()
