"""The first failure ends the attempt and is the one that is named."""

from dataclasses import replace

import pytest

from coordinator.core.events import PlanTooLarge
from muster.domain.gangs.plan import Goal, Stage
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.frameworks.framework import Framework, FrameworkName
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import JobPhase, State, SuccessRule
from muster.domain.jobs.restart import RestartPolicy
from tests.builders import World, spec

PAIR = spec(2, gpus=1)
MPI_PAIR = spec(2, gpus=1, framework=Framework(name=FrameworkName.MPI), success=SuccessRule.RANK0)
NO_IMAGE = Failure(kind=FailureKind.IMAGE, message="no such image")


def world() -> World:
    return World(("a", 1), ("b", 1))


@pytest.mark.parametrize("stages", [(), (Stage.PREPARING,), (Stage.PREPARED,), (Stage.PREPARED, Stage.ARMED)])
def test_a_failure_in_any_phase_before_the_start_stops_the_others(stages: tuple[Stage, ...]) -> None:
    w = world()
    job = w.submit(PAIR)
    w.tell_all(job, *stages)
    w.tell(job, 1, Stage.FAILED, failure=NO_IMAGE)

    assert w.states(job) == [State.STOPPING, State.FAILED]
    assert str(w.attempt(job).failure) == "rank 1 on b: no such image"
    assert w.phase(job) is JobPhase.STOPPING


def test_a_job_has_failed_when_the_others_have_stopped() -> None:
    w = world()
    job = w.submit(PAIR)
    w.tell(job, 1, Stage.FAILED, failure=NO_IMAGE)
    w.tell(job, 0, Stage.STOPPED)

    assert w.states(job) == [State.STOPPED, State.FAILED]
    assert w.phase(job) is JobPhase.FAILED


def test_an_exit_code_is_a_failure_that_carries_exit_and_last_lines() -> None:
    w = world()
    job = w.running(PAIR)
    exit_ = Exit(code=3)
    failure = Failure(kind=FailureKind.EXIT_CODE, message="ended with exit code 3", exit=exit_, log_tail=("oops",))
    w.tell(job, 0, Stage.EXITED, exit=exit_, failure=failure)

    assert w.rank(job, 0).exit == exit_
    assert w.attempt(job).failure == Failure(
        kind=FailureKind.EXIT_CODE,
        message="ended with exit code 3",
        rank=0,
        node=NodeId("a"),
        exit=exit_,
        log_tail=("oops",),
    )


def test_an_exit_without_a_reason_gets_one() -> None:
    w = world()
    job = w.running(PAIR)
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=137))

    assert str(w.attempt(job).failure) == "rank 0 on a: was killed by SIGKILL"


def test_only_the_first_failure_is_named() -> None:
    w = world()
    job = w.running(PAIR)
    w.tell(job, 1, Stage.EXITED, exit=Exit(code=1))
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=143))

    assert str(w.attempt(job).failure) == "rank 1 on b: ended with exit code 1"
    assert w.states(job) == [State.STOPPED, State.FAILED]


@pytest.mark.parametrize("kind", [FailureKind.SIGNAL, FailureKind.OUT_OF_MEMORY])
def test_a_waiting_execution_that_ran_out_of_memory_is_named_before_what_rank_0_saw_of_it(kind: FailureKind) -> None:
    w = world()
    job = w.running(MPI_PAIR)
    seen = Failure(kind=kind, message="was killed", exit=Exit(code=137))
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=137), failure=seen)
    w.tell(job, 1, Stage.EXITED, exit=Exit(code=0, out_of_memory=True))

    message = "ran out of memory; then rank 0 on a: was killed by SIGKILL"
    assert w.attempt(job).failure == Failure(
        kind=FailureKind.OUT_OF_MEMORY, message=message, rank=1, node=NodeId("b"), exit=Exit(code=137)
    )
    assert w.states(job) == [State.FAILED, State.STOPPED]


def test_of_several_that_ran_out_of_memory_the_first_that_is_told_is_named() -> None:
    w = World(("a", 1), ("b", 1), ("c", 1))
    job = w.running(spec(3, gpus=1, framework=MPI_PAIR.framework, success=SuccessRule.RANK0))
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=137))
    w.tell(job, 2, Stage.EXITED, exit=Exit(code=0, out_of_memory=True))
    w.tell(job, 1, Stage.EXITED, exit=Exit(code=0, out_of_memory=True))

    assert str(w.attempt(job).failure) == "rank 2 on c: ran out of memory; then rank 0 on a: was killed by SIGKILL"


@pytest.mark.parametrize(
    ("wanted", "end"), [(PAIR, Exit(code=143, out_of_memory=True)), (MPI_PAIR, Exit(code=0))], ids=["no MPI", "memory"]
)
def test_no_other_end_changes_what_is_named(wanted: JobSpec, end: Exit) -> None:
    w = world()
    job = w.running(wanted)
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=137))
    w.tell(job, 1, Stage.EXITED, exit=end)

    assert str(w.attempt(job).failure) == "rank 0 on a: was killed by SIGKILL"


def test_the_exit_code_of_those_that_were_stopped_is_kept() -> None:
    w = world()
    job = w.running(PAIR)
    w.tell(job, 1, Stage.EXITED, exit=Exit(code=1))
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=143))

    assert w.rank(job, 0).exit == Exit(code=143)


def test_a_failure_while_it_is_being_stopped_counts_as_stopped() -> None:
    w = world()
    job = w.submit(PAIR)
    w.stop(job)
    w.tell(job, 0, Stage.FAILED, failure=NO_IMAGE)
    w.tell(job, 1, Stage.STOPPED)

    assert w.states(job) == [State.STOPPED, State.STOPPED]
    assert w.attempt(job).failure is None
    assert w.phase(job) is JobPhase.STOPPED


def test_a_success_before_the_failure_of_another_stays_one() -> None:
    w = world()
    job = w.running(PAIR)
    w.tell(job, 0, Stage.EXITED)
    w.tell(job, 1, Stage.EXITED, exit=Exit(code=1))

    assert w.states(job) == [State.SUCCEEDED, State.FAILED]
    assert w.phase(job) is JobPhase.FAILED


def test_with_the_rule_rank0_a_failure_of_another_before_its_end_fails_the_job() -> None:
    w = world()
    job = w.running(spec(2, gpus=1, success=SuccessRule.RANK0))
    w.tell(job, 1, Stage.EXITED, exit=Exit(code=1))
    w.tell(job, 0, Stage.EXITED)

    assert w.states(job) == [State.STOPPED, State.FAILED]
    assert w.phase(job) is JobPhase.FAILED


def test_an_execution_that_its_agent_gave_up_is_a_failure() -> None:
    w = world()
    job = w.running(PAIR)
    w.tell(job, 0, Stage.STOPPED)

    assert str(w.attempt(job).failure) == "rank 0 on a: the agent stopped it without being told to"


def test_what_a_failed_execution_held_is_free_at_once_and_the_others_keep_theirs() -> None:
    w = world()
    job = w.submit(PAIR)
    w.tell(job, 1, Stage.FAILED)

    assert w.cluster.load.used(NodeId("b")).gpus == set()
    assert w.cluster.load.used(NodeId("a")).gpus == {"GPU-a-0"}


def test_the_next_job_is_placed_when_the_failed_one_has_gone() -> None:
    w = world()
    first, second = w.running(PAIR), w.submit(PAIR)
    w.tell(first, 0, Stage.EXITED, exit=Exit(code=1))
    assert w.phase(second) is JobPhase.QUEUED

    w.tell(first, 1, Stage.EXITED, exit=Exit(code=143))

    assert w.phase(second) is JobPhase.PREPARING


@pytest.mark.parametrize("wanted", [PAIR, spec(2, gpus=1, success=SuccessRule.RANK0)])
def test_the_order_to_stop_is_given_once(wanted: JobSpec) -> None:
    w = world()
    job = w.running(wanted)
    w.tell(job, 1, Stage.EXITED, exit=Exit(code=1))

    assert w.attempt(job).goal is Goal.STOP
    assert [line.goal for line in w.last_plan("a").desired] == [Goal.STOP]


def too_large(w: World, job: JobId, node: str = "b", attempt: int = 1) -> None:
    """What the coordinator's edge finds out when it is about to send a plan."""
    w.turn(PlanTooLarge(node=NodeId(node), job=job, attempt=attempt, message="its role worker has 99 bytes"))


def test_what_is_too_large_to_be_told_ends_the_attempt_with_the_reason_and_is_not_tried_again() -> None:
    w = world()
    job = w.submit(replace(PAIR, restarts=RestartPolicy(limit=3, infrastructure=3)))
    too_large(w, job)
    assert w.states(job) == [State.STOPPING, State.STOPPING]

    w.tell_all(job, Stage.STOPPED)

    assert w.attempt(job).failure == Failure(
        kind=FailureKind.TOO_LARGE, message="its role worker has 99 bytes", rank=1, node=NodeId("b")
    )
    assert w.states(job) == [State.STOPPED, State.FAILED]
    assert w.phase(job) is JobPhase.FAILED
    assert w.cluster.jobs[job].gave_up == "it would be as large the next time"


def test_what_is_too_large_to_be_told_is_told_of_an_attempt_that_goes_on() -> None:
    """The same plan may be on its way several times, and the word of it late."""
    w = world()
    job = w.submit(PAIR)
    too_large(w, job)
    before = w.states(job)

    too_large(w, job)
    too_large(w, job, node="nowhere")
    too_large(w, job, attempt=7)
    too_large(w, JobId("unknown"))

    assert w.states(job) == before
