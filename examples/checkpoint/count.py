"""Count, save now and then and when the job is stopped, and go on from there. Standard library only.

The directory of the checkpoints, CHECKPOINTS, must be one that every node has; here it is below /tmp.
"""

import importlib
import os
import signal
import sys
import time
from pathlib import Path

STEPS = 1000
SECONDS_A_STEP = 0.1
SAVED_EVERY = 100


def main() -> int:
    """Count from the last checkpoint on: 0 when it is done, and when it was saved in time."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # the notice says the same, and when to be gone
    sys.path.append(os.environ["MUSTER_CONFIG_DIR"])
    worker = importlib.import_module("muster_worker")  # `from muster import worker` where that is installed
    me = worker.load()
    directory = Path(os.environ.get("CHECKPOINTS", f"/tmp/checkpoints-{me.job}"))
    directory.mkdir(parents=True, exist_ok=True)
    checkpoint = directory / f"rank-{me.rank}"
    first = int(checkpoint.read_text()) if checkpoint.exists() else 0
    print(f"rank {me.rank} begins at {first}", flush=True)
    for step in range(first, STEPS):
        notice = worker.noticed()
        if notice or step % SAVED_EVERY == 0:
            save(checkpoint, step)
            worker.checkpointed()
        if notice:
            print(f"rank {me.rank} saved {step}: {notice.reason}, {notice.seconds_left:.0f} s were left", flush=True)
            return 0
        time.sleep(SECONDS_A_STEP)
    print(f"rank {me.rank} has counted to {STEPS}", flush=True)
    return 0


def save(checkpoint: Path, step: int) -> None:
    """Write the checkpoint whole, or not at all."""
    temporary = checkpoint.with_suffix(".part")
    temporary.write_text(str(step))
    temporary.replace(checkpoint)


if __name__ == "__main__":
    sys.exit(main())
