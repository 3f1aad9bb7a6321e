"""Where an attachment leads, and why nobody can attach: each sentence as people read it."""

from datetime import timedelta

import pytest

from coordinator.service.attaching.place import attach_place
from muster.domain.errors import ConflictError, MusterError, UnavailableError, UnknownNameError
from muster.domain.fleet.features import ALL_FEATURES, ATTACH
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.failure import Exit
from tests.builders import World, pass_time, report, spec


@pytest.fixture
def world() -> World:
    return World(("a", 8), ("b", 8))


def refusal(world: World, job: JobId, rank: int | None = None, *, later: float = 0) -> tuple[type[MusterError], str]:
    """The error that somebody gets who attaches so many seconds later."""
    with pytest.raises(MusterError) as raised:
        attach_place(world.cluster, job, rank, world.now + timedelta(seconds=later))
    return raised.type, str(raised.value)


def test_the_lowest_rank_that_runs_is_meant_where_none_is_named(world: World) -> None:
    job = world.running(spec(3, name="dev"))
    assert attach_place(world.cluster, job, None, world.now).rank == 0
    assert attach_place(world.cluster, job, 2, world.now).rank == 2

    world.tell(job, 0, Stage.EXITED, exit=Exit(code=0))
    place = attach_place(world.cluster, job, None, world.now)
    assert (place.rank, place.job_name, place.project) == (1, "dev", "default")


def test_a_job_that_waits_says_so_and_how_to_wait_for_it(world: World) -> None:
    world.running(spec(2, 8))
    queued = world.submit(spec(1, 8, name="dev"))

    text = "dev is queued; --wait waits for it, and `muster why dev` tells why"
    assert refusal(world, queued) == (ConflictError, text)


def test_a_job_that_is_being_prepared_says_how_far_it_is(world: World) -> None:
    job = world.submit(spec(1, name="dev"))
    assert refusal(world, job) == (ConflictError, "rank 0 of dev is being prepared on a; --wait waits for it")

    world.tell(job, 0, Stage.PREPARING, detail="pulling image 41 %")
    text = "rank 0 of dev is being prepared on a (pulling image 41 %); --wait waits for it"
    assert refusal(world, job) == (ConflictError, text)


@pytest.mark.parametrize(
    ("seconds", "ago"), [(0, "0 s ago"), (89, "89 s ago"), (180, "3 min ago"), (2 * 3600, "2 h ago")]
)
def test_an_execution_that_has_ended_says_when_and_how_and_where_its_log_is(
    world: World, seconds: int, ago: str
) -> None:
    job = world.running(spec(2, name="dev"))
    world.tell(job, 1, Stage.EXITED, exit=Exit(code=0), at=world.now)

    text = f"rank 1 of dev ended {ago} with exit code 0; its log: muster logs dev --rank 1"
    assert refusal(world, job, 1, later=seconds) == (ConflictError, text)


def test_an_execution_that_failed_or_was_stopped_says_so(world: World) -> None:
    job = world.submit(spec(2, name="dev"))
    world.tell(job, 1, Stage.FAILED)
    world.tell(job, 0, Stage.STOPPED)

    kind, text = refusal(world, job, 1)
    assert (kind, text.partition(" failed ")[0], text.partition(": ")[2]) == (
        ConflictError,
        "rank 1 of dev",
        "no such image; its log: muster logs dev --rank 1",
    )
    kind, text = refusal(world, job, 0)
    assert (kind, text.startswith("rank 0 of dev was stopped ")) == (ConflictError, True)


def test_an_execution_that_is_being_stopped_says_so(world: World) -> None:
    job = world.running(spec(1, name="dev"))
    world.stop(job)

    assert refusal(world, job) == (ConflictError, "rank 0 of dev is being stopped")


def test_a_rank_that_the_job_does_not_have_names_those_that_it_has(world: World) -> None:
    gang, alone = world.running(spec(4, name="dev")), world.running(spec(1, name="alone"))

    assert refusal(world, gang, 4) == (UnknownNameError, "dev has ranks 0 … 3")
    assert refusal(world, alone, 1) == (UnknownNameError, "alone has rank 0")


def test_a_node_that_is_silent_says_for_how_long(world: World) -> None:
    job = world.running(spec(1, name="dev"))
    world.disconnect("a")
    pass_time(world, 40, NodeId("a"))

    kind, text = refusal(world, job)
    assert (kind, text.startswith("a has not been heard for "), text.endswith(" s; nothing was started")) == (
        UnavailableError,
        True,
        True,
    )


def test_a_node_whose_agent_takes_none_says_why(world: World) -> None:
    job = world.running(spec(1, name="dev"))
    running = report(world.rank(job, 0).id, Stage.RUNNING)
    world.connect("a", reports=[running], features=ALL_FEATURES - {ATTACH})

    text = "a takes no attachments (its agent was started with --no-attach, or is older)"
    assert refusal(world, job) == (ConflictError, text)
