"""What user code tells its agent by files in its status directory. Whoever runs there may write anything into it."""

import os
import stat
from datetime import UTC, datetime

from agent.executions.layout import CHECKPOINTS, ExecutionDirectory


def last_checkpoint(directory: ExecutionDirectory, now: datetime) -> datetime | None:
    """When user code last told that a checkpoint is whole, and never later than now; None: it has not."""
    try:
        found = os.stat(directory.status / CHECKPOINTS, follow_symlinks=False)  # noqa: PTH116 - cheaper than a path object
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode):
        return None
    return datetime.fromtimestamp(min(max(found.st_mtime, 0.0), now.timestamp()), UTC)
