"""The directory of one execution on its node: what it holds, and the names of its files."""

from pathlib import Path

from muster.domain.gangs.plan import LAUNCH_PROGRAMS
from muster.domain.ids import ExecutionId


class ExecutionDirectory:
    """The directories of one execution on the node, under the agent's state directory.

    `config/` (roster files, read-only for the execution), `outputs/` and `work/` (the working directory of a
    process) and the log. The loop makes and removes it; runtimes only use it.
    """

    def __init__(self, root: Path, execution: ExecutionId) -> None:
        self.path = root / execution
        self.config = self.path / "config"
        self.programs = self.config / LAUNCH_PROGRAMS
        """Made where a dialect brings programs."""
        self.outputs = self.path / "outputs"
        self.work = self.path / "work"
        self.inputs = self.path / "inputs"
        """Made for dialects that have such a directory; nothing is in it."""
        self.home = self.path / "home"
        """Made by runtimes whose users need one."""
        self.log = self.path / "log.cri"


BELL = "bell"
"""The named pipe in an execution's directory."""


GRACE = "grace"
"""File in an execution's directory that says until when a stop lets the processes go on, by CLOCK_BOOTTIME."""


EXECUTION_RECORD = "execution.json"
"""File in an execution's directory."""


PROCESS_RECORD = "process.json"
"""File in an execution's directory."""


CGROUPS = "cgroups.json"
"""File in an execution's directory with the paths of its cgroups, as a list."""


STARTED = "started"
"""File in an execution's directory with the id of the container, written just before its start.

It tells what may run while no engine does.
"""


FENCED = "fenced"
"""File in an execution's directory that says why it was killed."""
