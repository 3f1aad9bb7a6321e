"""Check-in, arming, release: nobody goes on before everybody is there."""

from dataclasses import replace
from datetime import timedelta

from muster.domain.gangs.plan import Goal, Stage
from muster.domain.gangs.roster import Member, PortLease, Roster
from muster.domain.ids import NodeId
from muster.domain.jobs.job import Network
from muster.domain.jobs.lifecycle import JobPhase, State, SuccessRule
from tests.builders import AT, World, role, spec

ONE_EACH = {"cpus": 64}
"""So much that a node holds one execution."""


def world() -> World:
    return World(("a", 0), ("b", 0))


def test_a_job_that_fits_is_placed_at_once() -> None:
    w = world()

    job = w.submit(spec(2, **ONE_EACH))

    assert w.states(job) == [State.PLACED, State.PLACED]
    assert w.seats(job) == ["a", "b"]
    assert w.attempt(job).placed_at == AT
    assert w.phase(job) is JobPhase.PREPARING


def test_nobody_is_armed_before_the_last_one_has_checked_in() -> None:
    w = world()
    job = w.submit(spec(2, **ONE_EACH))
    w.tell(job, 0, Stage.PREPARED)

    assert w.attempt(job).goal is Goal.PREPARE
    w.tell(job, 1, Stage.PREPARED)

    assert w.attempt(job).goal is Goal.ARM
    assert w.states(job) == [State.CHECKED_IN, State.CHECKED_IN]


def test_nobody_is_released_before_the_last_one_is_armed() -> None:
    w = world()
    job = w.submit(spec(2, **ONE_EACH))
    w.tell_all(job, Stage.PREPARED)
    w.tell(job, 1, Stage.ARMED)

    assert w.attempt(job).goal is Goal.ARM
    w.tell(job, 0, Stage.ARMED)

    assert w.attempt(job).goal is Goal.RUN


def test_a_job_runs_when_one_runs_and_has_started_when_all_have() -> None:
    w = world()
    job = w.submit(spec(2, **ONE_EACH))
    w.tell_all(job, Stage.PREPARED, Stage.ARMED)
    w.tell(job, 0, Stage.RUNNING)
    assert (w.phase(job), w.attempt(job).started_at) == (JobPhase.RUNNING, None)

    w.advance(1)
    w.tell(job, 1, Stage.RUNNING)

    assert w.attempt(job).started_at == AT + timedelta(seconds=1)


def test_every_phase_has_its_time() -> None:
    w = world()
    job = w.submit(spec(2, **ONE_EACH))
    for stage in (Stage.PREPARED, Stage.ARMED, Stage.RUNNING, Stage.EXITED):
        w.advance(1)
        w.tell_all(job, stage)

    attempt = w.attempt(job)
    times = (attempt.placed_at, attempt.checked_in_at, attempt.released_at, attempt.started_at, attempt.ended_at)
    assert times == tuple(AT + timedelta(seconds=second) for second in range(5))


def test_a_job_succeeds_when_all_have_exited_well() -> None:
    w = world()
    job = w.running(spec(2, **ONE_EACH))
    w.tell(job, 0, Stage.EXITED)
    assert w.phase(job) is JobPhase.RUNNING

    w.tell(job, 1, Stage.EXITED)

    assert w.phase(job) is JobPhase.SUCCEEDED
    assert w.cluster.jobs[job].ended_at == w.now


def test_the_roster_tells_everybody_of_everybody() -> None:
    w = world()
    job = w.submit(spec(roles=(role(1, name="master", cpus=64), role(1, cpus=64)), network=Network.BRIDGE))
    port = PortLease(name="master", host_port=31000, container_port=80)
    w.tell(job, 1, Stage.PREPARED, address="10.0.0.2", ports=())
    w.advance(2)
    w.tell(job, 0, Stage.PREPARED, address="10.0.0.1", ports=(port,))

    expected = Roster.of(
        job=job,
        job_name="train",
        attempt=1,
        network=Network.BRIDGE,
        members=(
            Member(
                rank=0,
                execution=w.rank(job, 0).id,
                role="master",
                node=NodeId("a"),
                address="10.0.0.1",
                checked_in_at=AT + timedelta(seconds=2),
                peer_port=20000,
                ports=(port,),
            ),
            Member(
                rank=1,
                execution=w.rank(job, 1).id,
                role="worker",
                node=NodeId("b"),
                address="10.0.0.2",
                checked_in_at=AT,
                peer_port=20000,
            ),
        ),
    )
    assert [follower.rosters for follower in w.followers.values()] == [{(job, 1): expected}] * 2


def test_addresses_and_ports_stay_as_they_were_first_reported() -> None:
    w = world()
    job = w.submit(spec(2, **ONE_EACH))
    w.tell(job, 0, Stage.PREPARED, address="10.0.0.1")
    w.tell(job, 0, Stage.PREPARED, address="10.9.9.9")

    assert w.rank(job, 0).address == "10.0.0.1"


def test_what_an_execution_does_is_kept_until_it_has_checked_in() -> None:
    w = world()
    job = w.submit(spec(2, **ONE_EACH))
    w.tell(job, 0, Stage.PREPARING, detail="pulling image 41 %")
    assert w.rank(job, 0).detail == "pulling image 41 %"

    w.tell(job, 0, Stage.PREPARED)

    assert w.rank(job, 0).detail == ""


def test_reports_that_overtake_each_other_bring_it_forward_through_all_states() -> None:
    w = world()
    job = w.submit(spec(2, **ONE_EACH))
    w.tell_all(job, Stage.PREPARED)
    w.tell(job, 0, Stage.ARMED)
    w.tell(job, 1, Stage.ARMED)
    w.tell(job, 0, Stage.EXITED)

    past = [State.QUEUED, State.PLACED, State.PREPARING, State.CHECKED_IN, State.ARMED, State.RUNNING, State.SUCCEEDED]
    assert list(w.rank(job, 0).times) == past


def test_a_gang_that_was_all_armed_ahead_of_the_order_is_still_released() -> None:
    w = world()
    job = w.submit(spec(2, **ONE_EACH))
    w.tell_all(job, Stage.ARMED)

    assert w.attempt(job).goal is Goal.RUN


def test_with_the_rule_rank0_the_others_are_stopped_once_rank_0_has_exited_well() -> None:
    w = world()
    job = w.running(spec(2, success=SuccessRule.RANK0, **ONE_EACH))
    w.tell(job, 0, Stage.EXITED)
    assert w.states(job) == [State.SUCCEEDED, State.STOPPING]

    w.tell(job, 1, Stage.EXITED)

    assert w.states(job) == [State.SUCCEEDED, State.STOPPED]
    assert w.phase(job) is JobPhase.SUCCEEDED


def test_with_the_rule_rank0_it_does_not_matter_how_the_others_exit_once_rank_0_has() -> None:
    w = world()
    job = w.running(spec(2, success=SuccessRule.RANK0, **ONE_EACH))
    w.tell(job, 0, Stage.EXITED)
    w.tell(job, 1, Stage.EXITED, exit=None)

    assert w.phase(job) is JobPhase.SUCCEEDED
    assert w.attempt(job).failure is None


def test_with_the_rule_rank0_a_node_that_is_lost_after_the_success_does_not_undo_it() -> None:
    w = world()
    job = w.running(spec(2, success=SuccessRule.RANK0, **ONE_EACH))
    w.tell(job, 0, Stage.EXITED)
    w.disconnect("b")
    w.advance(100)

    assert w.states(job) == [State.SUCCEEDED, State.LOST]
    assert w.phase(job) is JobPhase.SUCCEEDED


def test_with_the_rule_rank0_others_may_exit_first() -> None:
    w = world()
    job = w.running(spec(2, success=SuccessRule.RANK0, **ONE_EACH))
    w.tell(job, 1, Stage.EXITED)
    assert w.phase(job) is JobPhase.RUNNING

    w.tell(job, 0, Stage.EXITED)

    assert w.phase(job) is JobPhase.SUCCEEDED


def test_once_the_role_that_decides_has_ended_well_the_others_are_stopped() -> None:
    w = world()
    worker = spec(2, **ONE_EACH)
    roles = (replace(worker.roles[0], name="ps", count=1), replace(worker.roles[0], name="chief", count=1))
    job = w.running(replace(worker, roles=roles, success="chief"))
    w.tell(job, 1, Stage.EXITED)
    assert w.states(job) == [State.STOPPING, State.SUCCEEDED]

    w.tell(job, 0, Stage.EXITED)

    assert w.phase(job) is JobPhase.SUCCEEDED


def test_of_a_role_that_decides_every_execution_must_end_well() -> None:
    w = world()
    worker = spec(2, **ONE_EACH)
    job = w.running(replace(worker, success=worker.roles[0].name))
    w.tell(job, 0, Stage.EXITED)
    assert w.phase(job) is JobPhase.RUNNING

    w.tell(job, 1, Stage.EXITED)

    assert w.phase(job) is JobPhase.SUCCEEDED
