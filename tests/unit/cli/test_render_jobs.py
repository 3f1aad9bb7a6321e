"""How jobs look."""

from dataclasses import replace
from datetime import timedelta

import pytest

from muster.cli.output.job_rows import job_row
from muster.cli.output.jobs import PhaseTime, attempt_times, explanation, job_details, jobs_table, roster_table, verdict
from muster.cli.output.units import time_text
from muster.domain.data.job_input import JobInput
from muster.domain.ids import GpuUuid, NodeId
from muster.domain.jobs.explanation import Awaited, Explanation, HelpfulChange, NodeRefusal, PoolRefusal, StartEstimate
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.image import FoundImage
from muster.domain.jobs.lifecycle import JobPhase, State
from tests.unit.cli import values
from tests.unit.cli.values import at, attempt, execution, shown

WAY = {State.PLACED: 1.0, State.PREPARING: 1.5, State.CHECKED_IN: 3.0, State.ARMED: 9.5, State.RUNNING: 10.0}
LATE = WAY | {State.CHECKED_IN: 9.0}


def test_a_list_of_jobs_has_one_line_each() -> None:
    ended = values.job(
        JobPhase.FAILED, summary="rank 1 on b: exit code 3", started=10, ended=130, failure=values.EXIT_3
    )

    assert shown(jobs_table([values.job(JobPhase.QUEUED, summary="waits"), ended], at(3700))).splitlines() == [
        "ID    NAME  PHASE   OWNER  PROJECT  WORKERS  GPUS        AGE    RAN  SUMMARY",
        "j7k2  ring  queued  ada    default        2     2  1 h 1 min      -  waits",
        "j7k2  ring  failed  ada    default        2     2  1 h 1 min  2 min  rank 1 on b: exit code 3",
    ]


def test_a_job_is_shown_with_its_owner_and_labels() -> None:
    job = values.job(JobPhase.QUEUED)
    told = shown(job_details(replace(job, spec=replace(job.spec, labels={"paper": "icml", "a": "1"})), at(0)))

    assert [line.split(maxsplit=1) for line in told.splitlines()[1:4]] == [
        ["project", "default"],
        ["owner", "ada"],
        ["labels", "a=1, paper=icml"],
    ]


def test_a_job_is_shown_with_the_first_url_of_each_input_and_how_many_more_there_are() -> None:
    job = values.job(JobPhase.QUEUED)
    urls = ("https://h/a?key=x", "https://h/b", "s3://acme/c/")
    inputs = (JobInput(name="one", url="https://h/a"), JobInput(name="some", urls=urls))
    roles = tuple(replace(role, inputs=inputs) for role in job.spec.roles)
    told = shown(job_details(replace(job, spec=replace(job.spec, roles=roles)), at(0)))
    assert "input one from https://h/a, input some from https://h/a and 2 other URLs" in " ".join(told.split())


def test_each_phase_of_an_ended_attempt_has_its_time() -> None:
    tried = attempt(placed=1, checked_in=9, released=9.5, started=10, ended=70)
    job = values.job(JobPhase.SUCCEEDED, tried, started=10, ended=70)

    assert [str(time) for time in attempt_times(job, tried, at(1000))] == [
        "queued 1.0 s",
        "preparing 8.0 s",
        "arming 500 ms",
        "running 1 min",
    ]


def test_a_live_attempt_is_counted_up_to_now() -> None:
    tried = attempt(placed=1)

    assert attempt_times(values.job(JobPhase.PREPARING, tried), tried, at(5)) == (
        PhaseTime(name="queued", span=timedelta(seconds=1)),
        PhaseTime(name="preparing", span=timedelta(seconds=4)),
    )


def test_an_attempt_that_ended_while_preparing_has_no_later_phases() -> None:
    tried = attempt(placed=1, ended=6)
    job = values.job(JobPhase.FAILED, tried, ended=6)

    assert [time.name for time in attempt_times(job, tried, at(50))] == ["queued", "preparing"]


def test_a_second_attempt_queues_from_the_end_of_the_first() -> None:
    first, second = attempt(placed=1, ended=6), attempt(number=2, placed=8)

    assert attempt_times(values.job(JobPhase.PREPARING, first, second), second, at(9))[0] == PhaseTime(
        name="queued",
        span=timedelta(seconds=2),
    )


def test_whoever_let_the_others_wait_is_named() -> None:
    tried = attempt(
        execution(0, State.RUNNING, entered=WAY),
        execution(1, State.RUNNING, entered=LATE),
        placed=1,
        checked_in=9,
    )

    assert attempt_times(values.job(JobPhase.PREPARING, tried), tried, at(9))[1].note == (
        "the first waited 6.0 s for rank 1"
    )


def test_a_failed_job_shows_the_culprit_and_its_last_words_as_they_were() -> None:
    tried = attempt(
        execution(0, State.STOPPED, entered=WAY),
        execution(1, State.FAILED, entered=LATE, ended=Exit(code=3), failure=values.EXIT_3),
        placed=1,
        checked_in=9,
        released=9.5,
        started=10,
        ended=12,
    )
    job = values.job(JobPhase.FAILED, tried, summary="it failed", failure=values.EXIT_3, started=10, ended=12)

    text = shown(job_details(job, at(100)))

    assert "executions  2 x worker: 1 CPU, 16 GiB memory, 1 x GPU, process, python ring.py" in text
    assert text.splitlines()[-3:] == [
        "first failure  rank 1 on b: ended with exit code 3",
        "  | Traceback",
        "  | ValueError: [red]no[/red]",
    ]


def test_a_job_says_whose_executions_are_not_told_and_how_to_ask_for_them() -> None:
    old = [attempt(number=number, placed=number, ended=number + 1) for number in range(2, 9)]
    dropped = [replace(each, executions_dropped=each.number in {2, 3, 4}) for each in old]
    first, newest = attempt(execution(0, State.FAILED), placed=1), attempt(execution(0, State.RUNNING), number=9)
    job = values.job(JobPhase.RUNNING, first, *dropped, newest)

    assert shown(job_details(job, at(50))).splitlines()[-2:] == [
        "attempts 5-8: executions are not listed; ask with `muster show j7k2 --attempt N`",
        "attempts 2-4: executions were dropped, as the job has very many; times and logs are kept",
    ]
    alone = shown(job_details(job, at(50), only=2)).splitlines()
    assert alone[-1] == "attempt 2: executions were dropped, as the job has very many; times and logs are kept"
    assert "attempt 1  " not in "\n".join(alone)
    assert "attempt 9  " not in "\n".join(alone)


def test_a_job_with_all_its_executions_says_nothing_of_others() -> None:
    text = shown(job_details(values.job(JobPhase.RUNNING, attempt(execution(0, State.RUNNING))), at(15)))

    assert "executions are not listed" not in text


def test_an_execution_shows_how_long_it_prepared_and_waited() -> None:
    tried = attempt(execution(0, State.RUNNING, entered=WAY), placed=1, checked_in=9)

    text = shown(job_details(values.job(JobPhase.RUNNING, tried), at(15)))

    assert text.splitlines()[-2:] == [
        "RANK  ROLE    NODE  STATE    PREPARED IN  WAITED    RAN  ADDRESS   PORTS         GPUS  DETAIL",
        "0     worker  a     running        2.0 s   6.0 s  5.0 s  10.0.0.1  master=20001  1",
    ]


def test_the_roster_says_where_everybody_is() -> None:
    text = shown(roster_table(attempt(execution(0, State.RUNNING), execution(1, State.RUNNING))))

    assert text.splitlines() == [
        "RANK  ROLE    NODE  ADDRESS   PORTS         GPUS",
        "0     worker  a     10.0.0.1  master=20001  1",
        "1     worker  b     10.0.0.2  master=20001  1",
    ]


def test_a_queued_job_is_explained_node_by_node() -> None:
    why = Explanation(
        summary="waits for GPUs",
        phase=JobPhase.QUEUED,
        queue_position=2,
        refusals=(NodeRefusal(node=NodeId("a"), reason="needs 8 GPUs, 6 are free"),),
    )

    assert shown(explanation(why, at(9))).splitlines() == [
        "waits for GPUs",
        "place in the queue: 2",
        "",
        "NODE  LACKS",
        "a     needs 8 GPUs, 6 are free",
    ]


def test_a_queued_job_is_told_when_it_starts_why_it_is_in_no_pool_and_what_would_help_now() -> None:
    why = Explanation(
        summary="waits for GPUs",
        phase=JobPhase.QUEUED,
        queue_position=1,
        pools=(PoolRefusal(pool="h100", reason="needs room"), PoolRefusal(pool="a100", reason="has a limit")),
        changes=(HelpfulChange(change="workers: 3", why="3 of 4 fit now"),),
        estimate=StartEstimate(about=at(20), latest=at(40)),
    )

    assert shown(explanation(why, at(9))).splitlines() == [
        "waits for GPUs",
        "place in the queue: 1",
        f"starts about {time_text(at(20))}, if all takes as long as expected",
        f"starts at the latest {time_text(at(40))}, by the run limits of what has its seats",
        "",
        "POOL  WHY NOT THERE",
        "h100  needs room",
        "a100  has a limit",
        "",
        "WOULD HELP NOW  AS",
        "workers: 3      3 of 4 fit now",
    ]


def test_a_preparing_job_is_explained_by_whom_it_awaits() -> None:
    who = Awaited(rank=1, node=NodeId("b"), state=State.PREPARING, detail="pulling image 41 %")

    why = Explanation(summary="waits", phase=JobPhase.PREPARING, awaited=(who,))

    assert shown(explanation(why, at(9))).splitlines() == [
        "waits",
        "",
        "RANK  NODE  STATE      DOING",
        "1     b     preparing  pulling image 41 %",
    ]


def test_the_verdict_is_one_line_with_the_culprit() -> None:
    tried = attempt()
    failed = values.job(JobPhase.FAILED, tried, failure=values.EXIT_3, started=10, ended=12)

    assert str(verdict(failed)) == "ring (j7k2) failed after 2.0 s: rank 1 on b: ended with exit code 3"
    assert str(verdict(values.job(JobPhase.FAILED, tried, ended=12))) == "ring (j7k2) failed before any user code ran"
    assert str(verdict(values.job(JobPhase.STOPPED, ended=12))) == "ring (j7k2) stopped"


@pytest.mark.parametrize(
    ("summary", "told"),
    [
        ("stopped: idle for 2h", "ring (j7k2) stopped after 2.0 s: idle for 2h"),
        ("stopped: ada asked for it", "ring (j7k2) stopped after 2.0 s: ada asked for it"),
        ("stopped on request", "ring (j7k2) stopped after 2.0 s"),
    ],
)
def test_the_verdict_of_a_job_that_was_stopped_says_why(summary: str, told: str) -> None:
    stopped = values.job(JobPhase.STOPPED, attempt(released=10), summary=summary, started=10, ended=12)

    assert str(verdict(stopped)) == told


def test_a_job_that_was_not_heard_of_before_its_end_has_taken_its_time_all_the_same() -> None:
    ended = values.job(JobPhase.SUCCEEDED, attempt(released=9.5, started=10), started=10, ended=10)

    assert str(verdict(ended)) == "ring (j7k2) succeeded after 500 ms"
    assert "500 ms" in job_row(ended, at(100))


def test_the_verdict_says_in_which_attempt_it_was_when_there_were_several() -> None:
    third = attempt(number=3, released=9.5, started=10, ended=12)
    ended = values.job(JobPhase.SUCCEEDED, attempt(), attempt(number=2), third, started=10, ended=12)

    assert str(verdict(ended)) == "ring (j7k2) succeeded after 2.5 s in attempt 3"


def test_user_code_that_ended_before_it_was_reported_to_run_has_run_all_the_same() -> None:
    seen = {State.PLACED: 1.0, State.CHECKED_IN: 3.0, State.RUNNING: 10.0, State.SUCCEEDED: 10.0}
    tried = attempt(execution(0, State.SUCCEEDED, entered=seen, ended=Exit(code=0)), checked_in=9, released=9.9)

    row = shown(job_details(values.job(JobPhase.SUCCEEDED, tried, ended=10), at(15))).splitlines()[-1]

    assert "  100 ms  " in row
    assert "exit code 0" in row


def test_a_failure_that_the_explanation_names_is_not_said_twice() -> None:
    why = Explanation(summary=str(values.EXIT_3), phase=JobPhase.FAILED, failure=values.EXIT_3)

    assert shown(explanation(why, at(9))).splitlines() == [
        "rank 1 on b: ended with exit code 3",
        "  | Traceback",
        "  | ValueError: [red]no[/red]",
    ]


def test_of_many_executions_those_that_are_alike_share_a_line_and_failures_come_first() -> None:
    members = [execution(rank, State.RUNNING, entered=WAY) for rank in range(20) if rank != 13]
    failed = execution(13, State.FAILED, entered=WAY, failure=values.EXIT_3)
    tried = attempt(*members[:13], failed, *members[13:], placed=1, checked_in=9, released=9.5)
    job = values.job(JobPhase.RUNNING, tried)

    lines = [" ".join(line.split()) for line in shown(job_details(job, at(15))).splitlines()[-3:]]

    assert lines == [
        "RANK ROLE NODE STATE PREPARED IN WAITED RAN ADDRESS PORTS GPUS DETAIL",
        "13 worker b failed 2.0 s 6.0 s 5.5 s - - 1 ended with exit code 3",
        "0-12, 14-19 worker 2 nodes running 2.0 s 6.0 s 5.5 s - - 1 each",
    ]
    assert len(shown(job_details(job, at(15), whole=True)).splitlines()) > 25


def test_gpus_are_told_by_their_numbers_on_the_node_and_wide_by_their_names() -> None:
    tried = attempt(replace(execution(0, State.RUNNING), gpus=tuple(GpuUuid(f"GPU-{n}") for n in (4, 5, 6, 0))))
    job, numbers = values.job(JobPhase.RUNNING, tried), {f"GPU-{n}": n for n in range(8)}

    assert "  0, 4-6  " in shown(job_details(job, at(15), gpus=numbers)) + "  "
    assert "GPU-4, GPU-5, GPU-6, GPU-0" in shown(job_details(job, at(15), whole=True, gpus=numbers))


def test_in_eighty_columns_no_execution_takes_two_lines() -> None:
    members = [
        replace(
            execution(rank, State.RUNNING, entered=WAY, detail="pulling a very large image 41 %"),
            node=NodeId(f"gpu-node-{rank}.example"),
        )
        for rank in range(8)
    ]
    tried = attempt(*members, placed=1, checked_in=9, released=9.5)

    lines = shown(job_details(values.job(JobPhase.RUNNING, tried), at(15)), width=80).splitlines()

    assert [line.split()[0] for line in lines[-8:]] == list("01234567")
    assert max(map(len, lines)) <= 80


def test_a_list_of_jobs_has_one_line_each_in_eighty_columns_too() -> None:
    spec = replace(values.SPEC, name="resnet-50-imagenet-baseline-seed-17")
    job = replace(values.job(JobPhase.FAILED, summary="rank 1 on b: ended with exit code 3"), spec=spec)

    lines = shown(jobs_table([job] * 3, at(9)), width=80).splitlines()

    assert (len(lines), max(map(len, lines)) <= 80) == (4, True)
    assert lines[1].startswith("j7k2  resnet-50-image…  failed  ada  ")
    assert (
        shown(jobs_table([job], at(9), wide=True))
        .splitlines()[0]
        .endswith("ATTEMPT  PRIORITY  LABELS  SUBMITTED            ENDED")
    )


def test_a_job_is_shown_with_what_its_images_were_found_to_be() -> None:
    digest = f"sha256:{'a' * 64}"
    images = (FoundImage(image="team/app:1", digest=digest), FoundImage(image="made-here", id=digest))
    text = shown(job_details(replace(values.job(JobPhase.RUNNING), images=images), at(0)))
    assert f"team/app:1  {digest}" in text
    assert f"made-here  from no registry; the first node has it as {digest}" in text
