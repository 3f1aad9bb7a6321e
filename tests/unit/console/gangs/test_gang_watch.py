"""A gang is watched from a while after its release on: by role, by what its ranks use now, and by what they print."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from console.telemetry.gangs.gang_watch import WATCHED_AFTER, GangWatch, compared_ranks
from muster.domain.event import JobEvent
from muster.domain.ids import GpuUuid, JobId, NodeId, execution_id
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.view import AttemptView, ExecutionView, JobView
from muster.domain.telemetry.point import Point
from muster.domain.telemetry.sample import ExecutionUse, GpuUse, HostUse, Sample

RELEASED = datetime(2026, 11, 27, 9, tzinfo=UTC)
JOB = JobId("k3f0abcd")


def at(seconds: float) -> datetime:
    """So long after the gang is watched."""
    return RELEASED + WATCHED_AFTER + timedelta(seconds=seconds)


def execution(rank: int, role: str = "worker") -> ExecutionView:
    return ExecutionView(
        id=execution_id(JOB, 1, rank),
        rank=rank,
        role=role,
        state=State.RUNNING,
        node=NodeId(f"gpu-{rank}"),
        gpus=(GpuUuid(f"GPU-{rank}"),),
    )


def watch(*executions: ExecutionView) -> GangWatch:
    attempt = AttemptView(number=1, released_at=RELEASED, executions=executions)
    spec = JobSpec(name="train", roles=(Role(command=("true",)),), project="red", labels={"team": "a"})
    job = JobView(
        id=JOB, spec=spec, phase=JobPhase.RUNNING, summary="", submitted_at=RELEASED, owner="ada", attempts=(attempt,)
    )
    return GangWatch(job, attempt)


def sample(rank: int, watts: float) -> Sample:
    return Sample(
        at=RELEASED,
        span=timedelta(seconds=10),
        host=HostUse(),
        gpus=((GpuUuid(f"GPU-{rank}"), GpuUse(busy=1.0, watts=watts)), (GpuUuid("GPU-of-another"), GpuUse(watts=9))),
        executions=((execution_id(JOB, 1, rank), ExecutionUse(cpus=1)),),
    )


def looked(gang: GangWatch, seconds: float, watts: Sequence[float | None]) -> list[JobEvent]:
    """The events of a look at a time at which ranks draw so much; None: nobody tells of a rank."""
    for rank, each in enumerate(watts):
        if each is not None:
            gang.hear(rank, sample(rank, each), at(seconds))
    return list(gang.events(gang.look(at(seconds))))


def test_a_rank_that_draws_less_than_the_others_for_three_minutes_is_told_with_its_node() -> None:
    gang = watch(*map(execution, range(4)))
    quiet = [event for seconds in range(0, 180, 10) for event in looked(gang, seconds, [640, 640, 640, 210])]
    [event] = looked(gang, 180, [640, 640, 640, 210])

    assert quiet == []
    assert event.text == "rank 3 on gpu-3 differs: its GPUs draw 210 W each, those of the others 640 W"
    assert (event.rank, event.nodes, event.at) == (3, ("gpu-3",), at(0))
    assert event.id.startswith("job/k3f0abcd/1/rank_differs/3/")
    [difference] = gang.differences
    assert (difference.rank, difference.node, difference.what, difference.until) == (3, "gpu-3", "watts", None)
    assert gang.told.owner == "ada"


def test_nothing_is_told_in_the_first_five_minutes() -> None:
    gang = watch(*map(execution, range(4)))
    assert [event for seconds in range(-300, 0, 10) for event in looked(gang, seconds, [640, 640, 640, 210])] == []
    assert looked(gang, 0, [640, 640, 640, 210]) == []


def test_what_a_rank_used_a_while_ago_says_nothing_of_it_now() -> None:
    gang = watch(*map(execution, range(4)))
    looked(gang, 0, [640, 640, 640, 210])
    assert [event for seconds in range(30, 400, 10) for event in looked(gang, seconds, [640, 640, 640, None])] == []


def test_ranks_are_compared_with_those_of_their_own_role() -> None:
    gang = watch(execution(0, "master"), *(execution(rank) for rank in range(1, 4)))
    assert [event for seconds in range(0, 200, 10) for event in looked(gang, seconds, [100, 640, 640, 640])] == []
    assert compared_ranks([execution(0, "master"), execution(1), execution(2)]) == []


def test_what_begins_to_differ_at_once_is_one_event_of_a_rank() -> None:
    gang = watch(*map(execution, range(4)))
    for rank in range(4):
        losses = [2.0] * 5 if rank != 3 else [5.0] * 5
        last = 5 if rank != 3 else 1
        gang.print(
            rank,
            [Point(time=at(step), values={"loss": loss, "step": step}) for step, loss in enumerate(losses)]
            + [Point(time=at(400), values={"step": 100})] * (last == 5),
        )
    [event] = gang.events(gang.look(at(10)))
    assert event.text == (
        "rank 3 on gpu-3 differs: its loss left the band of the other 3 at step 0; "
        "it has printed no number since 09:05:04, the other 3 have"
    )
