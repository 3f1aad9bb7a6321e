"""Which jobs and nodes a command line means: by name, by phase, by label, or all of them."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from muster.cli.exit_codes import ExitCode
from muster.domain.fleet.node import Cordon, NodeState
from muster.domain.ids import JobId
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.view import JobView
from muster.rpc.v1 import jobs_pb2
from tests.integration.canned_coordinator import Canned, serving
from tests.integration.command_line import Muster
from tests.unit.cli import values
from tests.unit.cli.values import attempt, execution

NOW = datetime.now(UTC)


def job(name: str, phase: JobPhase, *, hours: float = 0.0, workers: int = 2, priority: int = 0) -> JobView:
    spec = replace(values.SPEC, name=name, priority=priority, roles=(replace(values.SPEC.roles[0], count=workers),))
    ended = NOW if phase.ended else None
    made = values.job(phase, attempt(execution(0, State.RUNNING)), failure=None)
    return replace(made, id=JobId(name), spec=spec, submitted_at=NOW - timedelta(hours=hours), ended_at=ended)


RUNNING = job("sweep-2", JobPhase.RUNNING, hours=0.5, workers=8)
QUEUED = job("sweep-1", JobPhase.QUEUED, hours=1.5, priority=5)
DONE = job("old", JobPhase.SUCCEEDED, hours=50)


@pytest.fixture
def muster() -> Iterator[Muster]:
    canned = Canned(jobs=[RUNNING, QUEUED, DONE])
    with serving(canned) as address:
        yield Muster(canned, address)


def stopped(muster: Muster) -> list[str]:
    return [asked.job for asked in muster.canned.asked_for(jobs_pb2.StopRequest)]


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (("-q",), "sweep-2 sweep-1 old"),
        (("-q", "--since", "1h"), "sweep-2"),
        (("-q", "--since", "2h"), "sweep-2 sweep-1"),
        (("-q", "--sort", "priority"), "sweep-1 sweep-2 old"),
        (("-q", "--sort", "workers", "-n", "1"), "sweep-2"),
        (("-q", "--phase", "queued", "--phase", "succeeded"), "sweep-1 old"),
    ],
)
def test_ids_of_jobs_are_listed_for_other_commands(muster: Muster, words: tuple[str, ...], ids: str) -> None:
    assert muster("jobs", *words).stdout.split() == ids.split()


def test_a_wide_list_says_whose_job_it_is_and_when_it_was_submitted(muster: Muster) -> None:
    head, first, *_ = muster("jobs", "-o", "wide").stdout.splitlines()

    assert head.split()[-5:] == ["ATTEMPT", "PRIORITY", "LABELS", "SUBMITTED", "ENDED"]
    assert "  default " in first


def test_jobs_are_stopped_by_name_or_phase_without_being_listed(muster: Muster) -> None:
    done = muster("stop", "--name", "sweep", "--phase", "queued", "--yes")

    assert (done.exit_code, done.stdout) == (0, "sweep-1 (sweep-1) stopping\n")
    assert stopped(muster) == ["sweep-1"]


def test_all_means_all_that_can_be_stopped(muster: Muster) -> None:
    assert muster("stop", "--all", "-y").exit_code == 0
    assert stopped(muster) == ["sweep-2", "sweep-1"]


def test_all_that_can_be_deleted_are_those_that_have_ended(muster: Muster) -> None:
    assert muster("delete", "--all", "-y").stdout == "old deleted\n"


def test_nothing_happens_to_jobs_that_nobody_has_named_without_a_yes(muster: Muster) -> None:
    done = muster("stop", "--all")

    assert done.exit_code == ExitCode.USAGE
    assert done.stderr == "error: nobody is there to be asked whether to stop 2 jobs; say --yes\n"
    assert stopped(muster) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("stop",), "say which jobs to stop: JOB, --name TEXT, --phase PHASE, --mine, --label NAME=VALUE, or --all"),
        (
            ("wait",),
            "say which jobs to wait for: JOB, --name TEXT, --phase PHASE, --mine, --label NAME=VALUE, or --all",
        ),
        (("delete", "old", "--all"), "name the jobs to delete, or describe them (--all, --name, --phase …), not both"),
    ],
)
def test_it_must_be_plain_which_jobs_are_meant(muster: Muster, words: tuple[str, ...], sentence: str) -> None:
    done = muster(*words)

    assert (done.exit_code, done.stderr) == (ExitCode.USAGE, f"error: {sentence}\n")


def test_where_nothing_fits_that_is_said(muster: Muster) -> None:
    done = muster("stop", "--name", "nothing", "--yes")

    assert (done.exit_code, done.stderr) == (0, "there are no jobs to stop\n")


def test_several_jobs_are_waited_for_and_the_first_failure_decides(muster: Muster) -> None:
    failed = replace(RUNNING, phase=JobPhase.FAILED, failure=values.EXIT_3)
    muster.canned.watches = [[failed], [replace(QUEUED, phase=JobPhase.SUCCEEDED)]]
    muster.canned.jobs = [failed, replace(QUEUED, phase=JobPhase.SUCCEEDED)]

    done = muster("wait", "sweep-2", "sweep-1")

    assert done.exit_code == 3
    assert sorted(line.split()[2] for line in done.stdout.splitlines()) == ["failed", "succeeded"]


def test_nodes_are_listed_by_state_pool_and_label(muster: Muster) -> None:
    a, b, c = values.node("a"), values.node("b"), values.node("c")
    muster.canned.nodes = [
        replace(a, pool="h100", inventory=replace(a.inventory, labels={"rack": "7"})),
        replace(b, cordon=Cordon(since=NOW, reason="disk")),
        replace(c, state=NodeState.LOST, inventory=replace(c.inventory, labels={"rack": "8"})),
    ]

    assert muster("nodes", "-q").stdout.split() == ["a", "b", "c"]
    assert muster("nodes", "-q", "--pool", "h100").stdout.split() == ["a"]
    assert muster("nodes", "-q", "--label", "rack").stdout.split() == ["a", "c"]
    assert muster("nodes", "-q", "--label", "rack=8").stdout.split() == ["c"]
    assert muster("nodes", "-q", "--state", "ready", "--not-cordoned").stdout.split() == ["a"]
    assert muster("nodes", "-q", "--cordoned").stdout.split() == ["b"]
    assert "disk" in muster("nodes").stdout
