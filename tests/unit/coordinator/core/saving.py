"""Jobs that save, for tests of a core."""

from dataclasses import replace
from datetime import timedelta
from hashlib import sha256

from coordinator.core.answers import Answer
from coordinator.core.data_events import CheckpointOrdered
from muster.domain.data.checkpoint import (
    CheckpointId,
    CheckpointOrder,
    CheckpointRanks,
    CheckpointToRestore,
    JobCheckpoint,
    StoredPart,
    ToldCheckpoints,
)
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.restart import RestartPolicy
from tests.builders import World, pass_time, spec

AGAIN = RestartPolicy(limit=9, infrastructure=9, backoff=timedelta())
RANK0 = CheckpointRanks.RANK0


def saving(count: int = 2, **how: object) -> JobSpec:
    wanted = spec(count, restarts=AGAIN)
    checkpoint = JobCheckpoint(**how)  # type: ignore[arg-type]  # whatever is asked for
    return replace(wanted, roles=(replace(wanted.roles[0], checkpoint=checkpoint),))


def part(name: str, number: int, content: str = "") -> StoredPart:
    tree = sha256(f"{name} {content}".encode()).hexdigest()
    return StoredPart(name=name, number=number, tree=tree, size=80, files=1, bytes=9)


def save(w: World, job: JobId, rank: int, *parts: StoredPart) -> None:
    w.tell(job, rank, Stage.RUNNING, checkpoints=ToldCheckpoints(parts=parts))


def save_all(w: World, job: JobId, name: str, number: int) -> None:
    for rank in range(w.cluster.jobs[job].spec.size):
        save(w, job, rank, part(name, number, str(rank)))


def fail(w: World, job: JobId) -> None:
    """Rank 0 ends badly; the others are stopped, and another attempt runs."""
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=1))
    for rank in range(1, w.cluster.jobs[job].spec.size):
        w.tell(job, rank, Stage.STOPPED)


def start_again(w: World, job: JobId, seconds: int = 0) -> None:
    """Fail, and have another attempt run."""
    pass_time(w, seconds)
    fail(w, job)
    w.tell_all(job, Stage.PREPARING, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)


def order(w: World, job: JobId, name: str, wanted: CheckpointOrder, attempt: int = 1) -> Answer:
    return w.turn(CheckpointOrdered(job=job, checkpoint=CheckpointId(attempt, name), order=wanted))[0]


def whole(w: World, job: JobId) -> list[str]:
    return [each.id.name for each in w.cluster.gangs.checkpoints.whole(job)]


def kept(w: World, job: JobId) -> set[str]:
    return {each.id.name for each in w.cluster.gangs.checkpoints.of(job)}


def restores(w: World, job: JobId) -> CheckpointId | None:
    return w.attempt(job).checkpoints.restores


def found_by(w: World, job: JobId, rank: int = 0) -> CheckpointToRestore | None:
    """What a rank of the newest attempt was told to find."""
    execution = w.rank(job, rank)
    assert execution.node is not None
    return w.followers[execution.node].assignments[execution.id].restore
