"""The directory of one execution on its node: what it holds, and the names of its files."""

from functools import cached_property
from pathlib import Path

from muster.domain.gangs.plan import LAUNCH_PROGRAMS
from muster.domain.ids import ExecutionId


class ExecutionDirectory:
    """The directories of one execution on the node, under the agent's state directory.

    `config/` (roster files, read-only for the execution), `outputs/`, `status/` and `work/` (the working directory of
    a process) and the log. The loop makes and removes it; runtimes only use it.
    """

    def __init__(self, root: Path, execution: ExecutionId) -> None:
        self.path = root / execution

    @cached_property
    def config(self) -> Path:
        """Roster files."""
        return self.path / "config"

    @cached_property
    def programs(self) -> Path:
        """Made where a dialect brings programs."""
        return self.config / LAUNCH_PROGRAMS

    @cached_property
    def outputs(self) -> Path:
        """What user code wants to have kept."""
        return self.path / "outputs"

    @cached_property
    def status(self) -> Path:
        """What user code tells its agent."""
        return self.path / "status"

    @cached_property
    def work(self) -> Path:
        """The working directory of a process."""
        return self.path / "work"

    @cached_property
    def inputs(self) -> Path:
        """Made for dialects that have such a directory; nothing is in it."""
        return self.path / "inputs"

    @cached_property
    def checkpoint(self) -> Path:
        """What user code saves for the next attempt; made where its job stores that."""
        return self.path / "checkpoint"

    @cached_property
    def code(self) -> Path:
        """The execution's copy of the code that its job brings along, where it brings any."""
        return self.path / "code"

    @cached_property
    def home(self) -> Path:
        """Made by runtimes whose users need one."""
        return self.path / "home"

    @cached_property
    def first(self) -> Path:
        """Made by runtimes that have a program in front of user code, which notes there how that ended."""
        return self.path / "first"

    @cached_property
    def run(self) -> Path:
        """Made where there is a door; below `config`, which containers have mounted whatever comes later."""
        return self.config / RUN

    @cached_property
    def door(self) -> Path:
        """The socket to which the companion and callers come."""
        return self.run / DOOR

    @cached_property
    def log(self) -> Path:
        """The log."""
        return self.path / "log.cri"


RUN = "run"
"""The directory of an execution's door, beside the roster files."""


DOOR = "door"
"""The socket in the directory of an execution's door."""


CHECKPOINTS = "checkpoints"
"""File in the status directory that user code writes anew whenever a checkpoint is whole; only its time counts."""


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


TICKET = "ticket"
"""File in an execution's directory with what its companion shows at the door, where user code comes to it as well."""


ATTACH_TICKET = "attach-ticket"
"""The same where the door was made when somebody attached, and no companion was there before."""


COMPANION_CALL = "call"
"""File in an execution's directory that says which companion its supervisor is to start; gone once that has read it."""


COMPANION_ANSWER = "answer"
"""The named pipe in an execution's directory into which its supervisor says what came of that."""


FENCED = "fenced"
"""File in an execution's directory that says why it was killed."""
