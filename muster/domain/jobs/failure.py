"""Why an execution failed, as a value that the user reads in CLI, API and UI."""

import signal as signals
from dataclasses import dataclass
from enum import StrEnum

from muster.domain.errors import MusterError
from muster.domain.ids import NodeId


class FailureKind(StrEnum):
    """What went wrong; the first group is the user's code or request, the second the infrastructure."""

    EXIT_CODE = "exit_code"
    SIGNAL = "signal"
    OUT_OF_MEMORY = "out_of_memory"
    COMMAND_NOT_FOUND = "command_not_found"
    TIME_LIMIT = "time_limit"
    INVALID_OPTION = "invalid_option"
    TOO_LARGE = "too_large"
    SETUP = "setup"
    QUEUE_TIMEOUT = "queue_timeout"
    VOLUME_FULL = "volume_full"
    GPU_MEMORY = "gpu_memory"
    DATA_REFUSED = "data_refused"

    IMAGE = "image"
    PORT_TAKEN = "port_taken"
    DISK_FULL = "disk_full"
    DATA = "data"
    CHECKPOINT = "checkpoint"  #: what an attempt was to begin with is damaged, or not in the depot any more
    GPU = "gpu"
    RUNTIME = "runtime"
    CHECK_IN_TIMEOUT = "check_in_timeout"
    AGENT_RESTARTED = "agent_restarted"
    NODE_LOST = "node_lost"
    DRAINED = "drained"
    PREEMPTED = "preempted"
    SUSPENDED = "suspended"

    @property
    def user(self) -> bool:
        """Whether the user's code or request is to blame; False: the infrastructure."""
        return self in _USER


_USER = frozenset(
    {
        FailureKind.EXIT_CODE,
        FailureKind.SIGNAL,
        FailureKind.OUT_OF_MEMORY,
        FailureKind.COMMAND_NOT_FOUND,
        FailureKind.TIME_LIMIT,
        FailureKind.INVALID_OPTION,
        FailureKind.TOO_LARGE,
        FailureKind.SETUP,
        FailureKind.QUEUE_TIMEOUT,
        FailureKind.VOLUME_FULL,
        FailureKind.GPU_MEMORY,
        FailureKind.DATA_REFUSED,
    },
)


class ExecutionError(MusterError):
    """Raised by runtimes and ports when an execution cannot go on; becomes a Failure."""

    def __init__(self, kind: FailureKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit:
    """How user code ended; an exit once reported never changes."""

    code: int
    """The exit code as a shell would say it: 128 + n for signal n."""
    out_of_memory: bool = False
    """Whether anything of it was killed because the memory of the execution was used up."""

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended it (`SIGKILL`), if one did."""
        try:
            return signals.Signals(self.code - 128).name if self.code > 128 else None  # noqa: PLR2004 - where shells begin to count signals
        except ValueError:
            return None

    def __str__(self) -> str:
        """Say how it ended, as the rest of a sentence: `was killed by SIGKILL`, `ended with exit code 3`."""
        if self.out_of_memory and self.code:
            return "ran out of memory and was killed"
        return f"was killed by {self.signal}" if self.signal else f"ended with exit code {self.code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The culprit: which execution, where, and why."""

    kind: FailureKind
    message: str
    """One sentence without rank and node."""
    rank: int | None = None
    node: NodeId | None = None
    exit: Exit | None = None
    log_tail: tuple[str, ...] = ()
    """The last lines that the execution printed."""

    def __str__(self) -> str:
        place = " on ".join(
            part for part in (None if self.rank is None else f"rank {self.rank}", self.node) if part is not None
        )
        return f"{place}: {self.message}" if place else self.message
