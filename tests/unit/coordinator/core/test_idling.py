"""Attempts that nobody uses: when that is told, when they are stopped, and what counts as use."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from coordinator.core.effects import AnnounceJob
from coordinator.core.events import TimePassed
from coordinator.core.notes import WentUnused
from coordinator.core.turn import idling
from coordinator.views.explain import explain
from coordinator.views.jobs import job_view
from muster.domain.event import JobEventKind
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.interactive import NEVER_IDLE, Interactive, notice_before_end, use_told_every
from muster.domain.jobs.job import Timeouts
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.restart import RestartPolicy
from tests.builders import World, pass_time, report, spec

LIMIT = timedelta(minutes=20)
DEV = spec(1, interactive=Interactive(), timeouts=Timeouts(idle=LIMIT))
MINUTE = 60


@pytest.fixture
def world() -> World:
    return World(("a", 8), ("b", 8))


def pass_minutes(world: World, minutes: float) -> None:
    pass_time(world, int(minutes * MINUTE))


def use(world: World, job: JobId, at: datetime, rank: int = 0) -> None:
    world.tell(job, rank, Stage.RUNNING, used_at=at)


def notices(world: World) -> list[datetime]:
    return [note.ends_at for note in world.notes if isinstance(note, WentUnused)]


def events(world: World, job: JobId) -> list[tuple[JobEventKind, str]]:
    return [(event.kind, event.text) for event in world.store.events(job, 0, 1000)]


def test_a_job_that_nobody_uses_is_stopped_after_its_limit_and_has_not_failed(world: World) -> None:
    job = world.running(DEV)
    released_at = world.now
    pass_minutes(world, 20)

    assert world.phase(job) is JobPhase.RUNNING
    pass_minutes(world, 1)
    assert world.states(job) == [State.STOPPING]
    assert job_view(world.cluster, job).summary == "stopping: idle for 20m"

    world.tell(job, 0, Stage.EXITED, exit=Exit(code=143))
    assert world.phase(job) is JobPhase.STOPPED
    assert world.attempt(job).failure is None
    assert job_view(world.cluster, job).summary == "stopped: idle for 20m"
    assert notices(world) == [released_at + LIMIT + timedelta(minutes=1)]


def test_people_hear_of_it_five_minutes_before_and_who_watches_the_job_is_woken_up(world: World) -> None:
    job = world.running(DEV)
    pass_time(world, 16 * MINUTE - 10)
    assert notices(world) == []
    assert idling.noticed_end(world.cluster, world.attempt(job).attempt_id) is None
    assert "stops at" not in job_view(world.cluster, job, whole=False).summary

    world.advance(10)
    end = world.now + timedelta(minutes=5)
    assert notices(world) == [end]
    assert idling.noticed_end(world.cluster, world.attempt(job).attempt_id) == end
    assert AnnounceJob(job=job) in world.effects
    told = f"stops at {end:%H:%M:%S} UTC unless it is used before (timeouts.idle: 20m)"
    assert told in job_view(world.cluster, job, whole=False).summary


def test_why_tells_when_it_is_stopped_as_long_as_it_runs(world: World) -> None:
    job = world.running(DEV)
    end = world.now + LIMIT + timedelta(minutes=1)

    told = explain(world.cluster, job, world.now).summary
    assert (
        told
        == f"1 of 1 running, 0 succeeded; stops at {end:%H:%M:%S} UTC unless it is used before (timeouts.idle: 20m)"
    )


def test_use_begins_the_time_anew_also_after_people_were_told_of_the_end(world: World) -> None:
    job = world.running(DEV)
    pass_minutes(world, 19)
    assert len(notices(world)) == 1
    use(world, job, world.now)

    assert idling.noticed_end(world.cluster, world.attempt(job).attempt_id) is None
    pass_minutes(world, 15)
    assert (world.phase(job), len(notices(world))) == (JobPhase.RUNNING, 1)
    pass_minutes(world, 6)
    assert (world.phase(job), len(notices(world))) == (JobPhase.STOPPING, 2)


def test_use_of_any_rank_is_use_of_the_attempt(world: World) -> None:
    job = world.running(replace(DEV, roles=(replace(DEV.roles[0], count=3),)))
    pass_minutes(world, 15)
    use(world, job, world.now, rank=2)
    pass_minutes(world, 15)

    assert world.phase(job) is JobPhase.RUNNING


def test_the_same_use_told_again_is_no_news(world: World) -> None:
    job = world.running(DEV)
    used_at = world.now
    use(world, job, used_at)
    for _ in range(3):
        pass_minutes(world, 7)
        use(world, job, used_at)

    assert world.phase(job) is JobPhase.STOPPING


@pytest.mark.parametrize("skew", [timedelta(days=-3), timedelta(days=3)])
def test_clocks_of_nodes_need_not_agree(world: World, skew: timedelta) -> None:
    job = world.running(DEV)
    pass_minutes(world, 15)
    use(world, job, world.now + skew)
    pass_minutes(world, 15)
    assert world.phase(job) is JobPhase.RUNNING

    pass_minutes(world, 6)
    assert world.phase(job) is JobPhase.STOPPING


def test_a_job_on_a_node_that_is_not_heard_is_not_stopped_for_what_nobody_knows(world: World) -> None:
    job = world.running(replace(DEV, timeouts=Timeouts(idle=LIMIT, lost_after=timedelta(days=1))))
    pass_minutes(world, 15)
    world.disconnect(world.seat(job))
    pass_minutes(world, 30)
    assert (world.phase(job), notices(world)) == (JobPhase.RUNNING, [])

    seat = world.seat(job)
    world.connect(seat, reports=[report(world.rank(job, 0).id, Stage.RUNNING)])
    assert world.phase(job) is JobPhase.RUNNING
    pass_minutes(world, 22)
    assert (world.phase(job), len(notices(world))) == (JobPhase.STOPPING, 1)


def test_a_coordinator_that_slept_hears_its_agents_before_it_stops_anything(world: World) -> None:
    job = world.running(DEV)
    pass_minutes(world, 10)
    world.now += timedelta(hours=3)
    world.turn(TimePassed())
    assert (world.phase(job), notices(world)) == (JobPhase.RUNNING, [])
    pass_minutes(world, 15)
    assert world.phase(job) is JobPhase.RUNNING
    pass_minutes(world, 7)
    assert world.phase(job) is JobPhase.STOPPING


def test_a_coordinator_that_starts_counts_from_its_start(world: World) -> None:
    job = world.running(DEV)
    pass_minutes(world, 19)
    world.restart()
    end = world.now + LIMIT + timedelta(minutes=1)

    assert idling.ends_at(world.cluster, world.attempt(job).attempt_id) == end
    assert world.cluster.deadlines.next_at is not None


def test_use_that_is_only_told_is_not_stored(world: World) -> None:
    job = world.running(DEV)
    before = world.store.load()
    pass_time(world, MINUTE)
    use(world, job, world.now)

    assert world.store.load() == before


@pytest.mark.parametrize("limit", [None, NEVER_IDLE])
def test_a_job_without_a_limit_is_never_stopped_for_that(world: World, limit: timedelta | None) -> None:
    job = world.running(spec(1, timeouts=Timeouts(idle=limit)))
    pass_minutes(world, 30)

    assert (world.phase(job), notices(world)) == (JobPhase.RUNNING, [])
    assert idling.ends_at(world.cluster, world.attempt(job).attempt_id) is None


def test_any_job_may_have_a_limit_and_is_not_started_again_when_it_is_stopped(world: World) -> None:
    limited = spec(2, timeouts=Timeouts(idle=timedelta(seconds=20)), restarts=RestartPolicy(limit=3, infrastructure=3))
    job = world.running(limited)
    world.advance(14.9)
    assert notices(world) == []
    for node in "ab":
        world.heartbeat(node)
    world.advance(10)
    assert world.phase(job) is JobPhase.RUNNING
    world.advance(0.1)
    assert world.states(job) == [State.STOPPING] * 2
    for rank in range(2):
        world.tell(job, rank, Stage.EXITED, exit=Exit(code=1))

    assert (world.phase(job), world.cluster.jobs[job].attempt) == (JobPhase.STOPPED, 1)


def test_a_job_that_was_deleted_meanwhile_is_not_looked_at(world: World) -> None:
    job = world.running(DEV)
    world.delete(job, force=True)
    world.tell(job, 0, Stage.EXITED)
    assert job not in world.cluster.jobs
    pass_minutes(world, 25)

    assert notices(world) == []


def test_preparing_is_no_idling(world: World) -> None:
    job = world.submit(replace(DEV, timeouts=Timeouts(idle=timedelta(seconds=20), check_in=timedelta(hours=3))))
    world.tell_all(job, Stage.PREPARING)
    pass_minutes(world, 10)

    assert (world.phase(job), notices(world)) == (JobPhase.PREPARING, [])


def test_events_tell_of_each_notice_and_of_the_end(world: World) -> None:
    job = world.running(DEV)
    pass_minutes(world, 19)
    use(world, job, world.now)
    pass_minutes(world, 21)
    world.tell(job, 0, Stage.EXITED)

    told = [(kind, text) for kind, text in events(world, job) if kind in {JobEventKind.IDLE, JobEventKind.STOPPING}]
    assert told == [
        (JobEventKind.IDLE, "nobody uses it; it is stopped in 300.0 s unless somebody does (timeouts.idle: 20m)"),
        (JobEventKind.IDLE, "nobody uses it; it is stopped in 300.0 s unless somebody does (timeouts.idle: 20m)"),
        (JobEventKind.STOPPING, "idle for 20m"),
    ]


def test_nodes_hear_the_limit_where_there_is_one(world: World) -> None:
    job = world.running(DEV)
    plain = world.running(spec(1))

    told = {each.execution: each for follower in world.followers.values() for each in follower.assignments.values()}
    watched, other = told[world.rank(job, 0).id], told[world.rank(plain, 0).id]
    assert (watched.idle, watched.interactive) == (LIMIT, Interactive())
    assert (other.idle, other.interactive) == (None, None)


def test_short_limits_are_told_of_sooner() -> None:
    assert notice_before_end(timedelta(hours=2)) == timedelta(minutes=5)
    assert notice_before_end(timedelta(seconds=10)) == timedelta(seconds=5)
    assert use_told_every(timedelta(hours=2)) == timedelta(minutes=1)
    assert use_told_every(timedelta(seconds=10)) == timedelta(seconds=2.5)
