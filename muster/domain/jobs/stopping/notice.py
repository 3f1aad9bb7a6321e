"""Why an execution is stopped and how much time it has: what the coordinator orders, and what user code reads."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from muster.domain.jobs.failure import FailureKind

NOTICE = "notice.json"
"""Name of the file beside the roster that is there once an execution is being stopped."""


class StopReason(StrEnum):
    """Why an execution is stopped."""

    STOPPED = "stopped"  #: somebody stopped or deleted the job
    PREEMPTED = "preempted"  #: another job gets what it has; it starts again later
    SUSPENDED = "suspended"  #: somebody suspended the job; it starts again when it is resumed
    DRAINED = "drained"  #: its node is being emptied; the job starts again elsewhere
    IDLE = "idle"  #: nobody has used the job for as long as it may go unused
    TIME_LIMIT = "time_limit"  #: the job has run for as long as it may
    FAILED = "failed"  #: another execution of the job failed or was lost
    FINISHED = "finished"  #: the executions that decide on the job's success have ended well
    VOLUME_FULL = "volume_full"  #: a volume of this execution has grown beyond its size
    GPU_MEMORY = "gpu_memory"  #: this execution has used more of a GPU than its portion for too long
    DISCONNECTED = "disconnected"  #: its node has had no word from the coordinator for too long

    @property
    def comes_back(self) -> bool:
        """Whether the job starts again without having failed, so that it is worth saving what was done."""
        return self in _COMING_BACK


_COMING_BACK = frozenset({StopReason.PREEMPTED, StopReason.SUSPENDED, StopReason.DRAINED})

REASONS_OF_FAILURES: Mapping[FailureKind, StopReason] = {
    FailureKind.DRAINED: StopReason.DRAINED,
    FailureKind.PREEMPTED: StopReason.PREEMPTED,
    FailureKind.SUSPENDED: StopReason.SUSPENDED,
    FailureKind.TIME_LIMIT: StopReason.TIME_LIMIT,
}
"""Failures of an attempt that give a reason of their own; any other one is that of another execution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopOrder:
    """How an execution is to be stopped."""

    reason: StopReason
    grace: timedelta
    """Between notice and SIGKILL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopNotice:
    """What user code reads while it is being stopped."""

    reason: StopReason
    kill_at: datetime
    """The time by the node's clock at which what is left of it is killed."""

    def written(self) -> bytes:
        """The notice as it lies beside the roster."""
        facts = {"reason": str(self.reason), "kill_at": self.kill_at.isoformat(timespec="milliseconds")}
        return json.dumps(facts).encode() + b"\n"


def read_notice(text: bytes) -> StopNotice:
    """The notice that was written; raises ValueError for what is none."""
    try:
        facts: Mapping[str, Any] = json.loads(text)
        kill_at = datetime.fromisoformat(facts["kill_at"])
        if kill_at.utcoffset() is None:
            raise ValueError("its time has no zone")
        return StopNotice(reason=StopReason(facts["reason"]), kill_at=kill_at)
    except (TypeError, KeyError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"this is no notice: {error}") from error
