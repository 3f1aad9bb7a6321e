"""A fault of a GPU explains the end of what ran on it, and of nothing else."""

from datetime import timedelta

import pytest

from agent.core.events import Armed, Exited, GpuFaulted, Prepared, Started
from agent.core.observed import exit_failure
from agent.core.watching.gpu_faults import RELATED, REMEMBERED, GpuFaults
from agent.gpus.health import fault
from muster.domain.gangs.plan import Desired, Goal
from muster.domain.ids import GpuUuid
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from tests.unit.agent.core.ledger_builders import MASTER, NOW, Agent, assignment, execution, roster

MINE, OTHER = GpuUuid("GPU-3"), GpuUuid("GPU-4")


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def faulted(xid: int, gpu: GpuUuid = MINE) -> GpuFaulted:
    raised = fault(gpu, xid)
    return GpuFaulted(gpu=gpu, index=3, message=raised.message, own=raised.own)


def ended(code: int = 1, *, out_of_memory: bool = False) -> Failure:
    failure = exit_failure(Exit(code=code, out_of_memory=out_of_memory), ("the", "end"))
    assert failure is not None
    return failure


def blamed(*faults: tuple[float, GpuFaulted], failure: Failure | None = None, at: float = 100) -> Failure:
    """What is said of an execution that ran from 10 s on, with faults at some seconds."""
    seen = GpuFaults()
    for when, each in faults:
        seen.note(each, NOW + seconds(when))
    return seen.blamed(failure or ended(), (MINE,), NOW + seconds(10), NOW + seconds(at))


def test_a_gpu_that_fell_off_the_bus_is_to_blame_and_the_exit_and_the_last_lines_stay() -> None:
    assert blamed((96, faulted(79))) == Failure(
        kind=FailureKind.GPU,
        message="GPU 3 (GPU-3) reported Xid 79: GPU has fallen off the bus, 4 s before it ended with exit code 1",
        exit=Exit(code=1),
        log_tail=("the", "end"),
    )


def test_however_long_the_program_hung_on_the_broken_gpu() -> None:
    assert blamed((10, faulted(48)), at=3610).message == (
        "GPU 3 (GPU-3) reported Xid 48: double bit ECC error, 3600 s before it ended with exit code 1"
    )


def test_the_first_fault_of_the_gpu_itself_counts() -> None:
    faults = ((50, faulted(31)), (60, faulted(94)), (60.5, faulted(79)))
    assert blamed(*faults, at=61).message.startswith("GPU 3 (GPU-3) reported Xid 94: contained ECC error, 1 s before")


@pytest.mark.parametrize("xid", [13, 31, 43, 45, 63, 92, 999])
def test_what_the_program_did_or_what_only_warns_is_named_but_not_blamed(xid: int) -> None:
    failure = blamed((99.5, faulted(xid)))
    assert failure.kind is FailureKind.EXIT_CODE
    assert failure.message.startswith(f"ended with exit code 1, less than 1 s after GPU 3 (GPU-3) reported Xid {xid}")


def test_a_warning_of_long_ago_is_not_worth_a_word() -> None:
    assert blamed((39.9, faulted(31))) == ended()


@pytest.mark.parametrize(
    ("when", "gpu"), [(9.9, MINE), (50, OTHER)], ids=["before it started", "of another execution's GPU"]
)
def test_faults_that_it_cannot_have_met_do_not_count(when: float, gpu: GpuUuid) -> None:
    assert blamed((when, faulted(79, gpu))) == ended()


def test_a_kill_may_come_from_a_fault_but_running_out_of_memory_does_not() -> None:
    assert blamed((99, faulted(79)), failure=ended(134)).message.endswith("1 s before it was killed by SIGABRT")
    out_of_memory = ended(137, out_of_memory=True)
    assert blamed((99, faulted(79)), failure=out_of_memory) == out_of_memory


def test_a_storm_of_faults_is_remembered_in_part() -> None:
    seen = GpuFaults()
    for number in range(10 * REMEMBERED):
        seen.note(faulted(79, GpuUuid(f"GPU-{number % 2}")), NOW + RELATED * number / (20 * REMEMBERED))
    failure = seen.blamed(ended(), (GpuUuid("GPU-0"),), NOW, NOW + RELATED)
    assert "60 s before" in failure.message


def test_the_failure_that_is_reported_names_the_fault() -> None:
    agent = Agent()
    mine = assignment(gpus=(MINE,))
    agent.whole_plan(Desired(execution=execution(), goal=Goal.PREPARE, assignment=mine))
    agent.step(Prepared(execution=execution(), address="10.0.0.1", ports=(MASTER,)))
    agent.plan(Desired(execution=execution(), goal=Goal.RUN), rosters=(roster(),))
    agent.step(Armed(execution=execution()))
    agent.step(Started(execution=execution()))
    agent.step(faulted(79))
    agent.step(Exited(execution=execution(), exit=Exit(code=1), log_tail=("the", "end")))
    [report] = agent.ledger.reports()
    assert report.failure is not None
    assert (report.failure.kind, report.exit) == (FailureKind.GPU, Exit(code=1))
