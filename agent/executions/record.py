"""What the agent notes in an execution's directory, for an agent that starts after it."""

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from agent.core.local import DEFAULT_GRACE
from agent.core.terms import Terms
from agent.executions.aside import put_aside
from agent.executions.layout import EXECUTION_RECORD, ExecutionDirectory
from agent.executions.whole_file import write_unseen, write_whole
from muster.domain.data.outputs import ExecutionOutputs, OutputsStage
from muster.domain.gangs.fence import Fence, Witness
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import PortLease
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.disconnect import OnDisconnect
from muster.domain.jobs.job import Network

log = logging.getLogger(__name__)


OUTPUTS_NOTE = "outputs.json"
"""File in an execution's directory that says what has become of its outputs, once that is known."""

PRIVATE_RECORD = 0o600
"""Rights of the file, which has the secret of the attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRecord:
    """What an execution is, and what was told to the coordinator."""

    job: str
    attempt: int
    rank: int
    address: str
    ports: tuple[PortLease, ...] = ()
    published: bool = False
    """Whether the container engine has its ports until it is cleared away; False where an agent wrote the record that
    did not note it."""
    started_at: datetime | None = None
    grace: timedelta = DEFAULT_GRACE
    fence: Fence | None = None
    """None where an agent wrote the record that did not know of it."""
    gpu_busy_ms: int | None = None
    """Milliseconds in which something ran on its GPUs by then; None: they do not tell."""

    @property
    def terms(self) -> Terms | None:
        """The terms on which it runs without the coordinator."""
        if self.fence is None:
            return None
        return Terms(job=JobId(self.job), attempt=self.attempt, grace=self.grace, fence=self.fence)


def record_of(assignment: Assignment, address: str, ports: tuple[PortLease, ...]) -> ExecutionRecord:
    """The record of an execution that is being prepared."""
    return ExecutionRecord(
        job=assignment.job,
        attempt=assignment.attempt,
        rank=assignment.rank,
        address=address,
        ports=ports,
        published=assignment.network is Network.BRIDGE,
        grace=assignment.grace,
        fence=assignment.fence,
    )


def note_first(directory: ExecutionDirectory, record: ExecutionRecord) -> None:
    """Write the record of an execution of which nothing was started yet: nobody reads it before that."""
    write_unseen(directory.path / EXECUTION_RECORD, _written(record), PRIVATE_RECORD)


def note(directory: ExecutionDirectory, record: ExecutionRecord) -> None:
    """Write the record, whole or not at all."""
    write_whole(directory.path / EXECUTION_RECORD, _written(record), PRIVATE_RECORD)


def note_busy(directory: ExecutionDirectory, milliseconds: int) -> None:
    """Add to its record how long its GPUs were busy, for an agent that starts after this one."""
    record = noted(directory)
    if record is not None:
        note(directory, replace(record, gpu_busy_ms=milliseconds))


def is_damaged(directory: ExecutionDirectory) -> bool:
    """Whether there is a record that nobody can read; a copy of it is kept for people."""
    if not (directory.path / EXECUTION_RECORD).exists() or noted(directory) is not None:
        return False
    kept = put_aside(directory.path / EXECUTION_RECORD, directory.path.parent.parent, directory.path.name)
    log.warning("the record of an execution is damaged", extra={"execution": directory.path.name, "kept": str(kept)})
    return True


def noted(directory: ExecutionDirectory) -> ExecutionRecord | None:
    """The record; None where there is none that this agent knows how to read."""
    try:
        facts: Mapping[str, Any] = json.loads((directory.path / EXECUTION_RECORD).read_bytes())
        started_at = facts["started_at"]
        return ExecutionRecord(
            job=facts["job"],
            attempt=facts["attempt"],
            rank=facts["rank"],
            address=facts["address"],
            ports=tuple(PortLease(**lease) for lease in facts["ports"]),
            published=bool(facts.get("published")),
            started_at=started_at and datetime.fromisoformat(started_at),
            grace=timedelta(seconds=facts["grace"]) if "grace" in facts else DEFAULT_GRACE,
            fence=_fence(facts["fence"]) if facts.get("fence") else None,
            gpu_busy_ms=int(facts["gpu_busy_ms"]) if facts.get("gpu_busy_ms") is not None else None,
        )
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return None


def _written(record: ExecutionRecord) -> bytes:
    facts = {
        "job": record.job,
        "attempt": record.attempt,
        "rank": record.rank,
        "address": record.address,
        "ports": [asdict(lease) for lease in record.ports],
        "published": record.published,
        "started_at": record.started_at and record.started_at.isoformat(),
        "grace": record.grace.total_seconds(),
        "fence": record.fence and _fence_facts(record.fence),
        "gpu_busy_ms": record.gpu_busy_ms,
    }
    return json.dumps(facts).encode()


def _fence_facts(fence: Fence) -> Mapping[str, object]:
    return {
        "lost_after": fence.lost_after.total_seconds(),
        "on_disconnect": fence.on_disconnect,
        "key": fence.key.hex(),
        "witnesses": [{"node": each.node, "address": each.address} for each in fence.witnesses],
    }


def _fence(facts: Mapping[str, Any]) -> Fence:
    return Fence(
        lost_after=timedelta(seconds=facts["lost_after"]),
        on_disconnect=OnDisconnect(facts["on_disconnect"]),
        key=bytes.fromhex(facts["key"]),
        witnesses=tuple(Witness(node=NodeId(each["node"]), address=each["address"]) for each in facts["witnesses"]),
    )


def note_outputs(path: Path, outputs: ExecutionOutputs) -> None:
    """Write down in an execution's directory what has become of its outputs. Raises OSError."""
    write_whole(path / OUTPUTS_NOTE, json.dumps({**asdict(outputs), "at": None}).encode(), PRIVATE_RECORD)


def noted_outputs(path: Path) -> ExecutionOutputs | None:
    """What was written down; None: nothing that this agent can read."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        facts = json.loads((path / OUTPUTS_NOTE).read_bytes())
        return ExecutionOutputs(**{**facts, "stage": OutputsStage(facts["stage"])})
    return None
