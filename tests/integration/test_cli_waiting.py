"""Commands that say when jobs are placed: hold, unhold, suspend, resume, change."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from muster import wire
from muster.cli.exit_codes import ExitCode
from muster.domain.ids import JobId
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.placing.pool_choice import PoolChoice
from muster.domain.jobs.queueing.change import JobChange
from muster.domain.jobs.queueing.waiting import WaitKind, WaitReason
from muster.rpc.v1 import jobs_pb2
from tests.integration.canned_coordinator import Canned, serving
from tests.integration.command_line import Muster
from tests.unit.cli import values
from tests.unit.cli.values import attempt

NOW = datetime.now(UTC)
RUNNING = replace(values.job(JobPhase.RUNNING, attempt(), failure=None), id=JobId("r1"), ended_at=None)
QUEUED = replace(RUNNING, id=JobId("q1"), phase=JobPhase.QUEUED)
HELD = replace(
    QUEUED,
    id=JobId("h1"),
    phase=JobPhase.WAITING,
    summary="held by ann since 2026-11-25 14:02:07 UTC",
    reasons=(WaitReason(kind=WaitKind.USER, by="ann", since=NOW),),
)
DONE = replace(RUNNING, id=JobId("d1"), phase=JobPhase.SUCCEEDED, ended_at=NOW)


@pytest.fixture
def muster() -> Iterator[Muster]:
    canned = Canned(jobs=[RUNNING, QUEUED, HELD, DONE])
    with serving(canned) as address:
        yield Muster(canned, address)


@pytest.mark.parametrize(
    ("command", "request_kind", "jobs"),
    [
        ("hold", jobs_pb2.HoldRequest, ["q1", "h1"]),
        ("unhold", jobs_pb2.UnholdRequest, ["h1"]),
        ("suspend", jobs_pb2.SuspendRequest, ["r1", "q1", "h1"]),
        ("resume", jobs_pb2.ResumeRequest, ["r1", "q1", "h1"]),
    ],
)
def test_all_jobs_are_those_to_which_the_order_applies(
    muster: Muster, command: str, request_kind: type, jobs: list[str]
) -> None:
    done = muster(command, "--all", "--yes")

    assert done.exit_code == ExitCode.SUCCESS
    assert [asked.job for asked in muster.canned.asked_for(request_kind)] == jobs


def test_nobody_is_held_without_a_question_unless_by_name(muster: Muster) -> None:
    assert "nobody is there to be asked whether to hold 2 jobs; say --yes" in muster("hold", "--all").stderr
    assert muster.canned.asked_for(jobs_pb2.HoldRequest) == []
    assert muster("hold", "q1").stdout.startswith("q1 (")
    assert [asked.job for asked in muster.canned.asked_for(jobs_pb2.HoldRequest)] == ["q1"]


def test_an_order_answers_with_the_job_as_a_document(muster: Muster) -> None:
    [held] = [json.loads(muster("hold", "h1", "-o", "json").stdout)]

    assert (held["id"], held["phase"]) == ("h1", "waiting")
    assert [(reason["kind"], reason["by"], reason["until"]) for reason in held["reasons"]] == [("user", "ann", None)]


def test_a_change_sends_what_was_said_and_nothing_else(muster: Muster) -> None:
    muster("change", "q1", "--priority", "7", "--limit", "3h", "--queue-limit", "none")
    [asked] = muster.canned.asked_for(jobs_pb2.ChangeRequest)

    assert (asked.priority, asked.run.ToTimedelta(), asked.queue.ToTimedelta()) == (7, timedelta(hours=3), timedelta())
    assert [field.name for field, _ in asked.ListFields()] == ["job", "priority", "run", "queue"]


def test_a_change_sends_another_class_and_pools_in_order_or_any(muster: Muster) -> None:
    muster("change", "q1", "--class", "spare", "--pool", "h100", "--pool", "a100:10m")
    muster("change", "q1", "--pool", "any")
    asked, freed = map(wire.job_change_from_wire, muster.canned.asked_for(jobs_pb2.ChangeRequest))

    pools = (PoolChoice(pool="h100"), PoolChoice(pool="a100", after=timedelta(minutes=10)))
    assert asked == JobChange(job_class=JobClass.SPARE, pools=pools)
    assert freed == JobChange(pools=())


@pytest.mark.parametrize(
    ("said", "meant"),
    [("2026-12-01T18:00+01:00", datetime(2026, 12, 1, 17, tzinfo=UTC)), ("2099-01-01T00:00Z", None)],
)
def test_a_job_is_given_another_time_to_begin(muster: Muster, said: str, meant: datetime | None) -> None:
    muster("change", "q1", "--not-before", said)
    [asked] = muster.canned.asked_for(jobs_pb2.ChangeRequest)

    assert asked.not_before.ToDatetime(UTC) == (meant or datetime(2099, 1, 1, tzinfo=UTC))


def test_a_change_of_nothing_or_to_no_time_is_refused(muster: Muster) -> None:
    assert "say what to change: --priority, --class" in muster("change", "q1").stderr
    told = muster("change", "q1", "--not-before", "soon").stderr
    assert "is neither `now`, nor a time from now such as 2h" in " ".join(told.split())
    assert muster.canned.asked_for(jobs_pb2.ChangeRequest) == []


def test_a_waiting_job_is_listed_with_what_it_waits_for(muster: Muster) -> None:
    [line] = [line for line in muster("jobs").stdout.splitlines() if line.startswith("h1")]

    assert "waiting" in line
    assert "held by ann since 2026-11-25" in line
