"""The command line against a coordinator that answers from values."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from muster.cli.exit_codes import ExitCode
from muster.cli.program import program
from muster.domain.ids import JobId
from muster.domain.jobs.explanation import Explanation
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.view import JobView
from muster.rpc.v1 import jobs_pb2
from tests.integration.canned_coordinator import Broken, Canned, Pause, serving
from tests.integration.command_line import Muster
from tests.unit.cli import values
from tests.unit.cli.values import attempt, execution, line

RUNNING = values.job(JobPhase.RUNNING, attempt(execution(0, State.RUNNING), execution(1, State.RUNNING)), started=1)
ENDED = values.job(JobPhase.SUCCEEDED, attempt(execution(0, State.SUCCEEDED)), started=1, ended=3)
FAILED = values.job(
    JobPhase.FAILED,
    attempt(execution(1, State.FAILED, failure=values.EXIT_3)),
    started=1,
    ended=3,
    failure=values.EXIT_3,
)
STOPPED = values.job(JobPhase.STOPPED, ended=3)


@pytest.fixture
def muster() -> Iterator[Muster]:
    canned = Canned()
    with serving(canned) as address:
        yield Muster(canned, address)


def test_jobs_are_listed_and_more_are_hinted_at(muster: Muster) -> None:
    muster.canned.jobs = [RUNNING, replace(ENDED, id=JobId("old1"))]

    shown = muster("jobs", "-n", "1")

    assert [row.split()[:3] for row in shown.stdout.splitlines()] == [
        ["ID", "NAME", "PHASE"],
        ["j7k2", "ring", "running"],
    ]
    assert shown.stderr == "there are more; --all lists them\n"


def test_jobs_can_be_chosen(muster: Muster) -> None:
    muster.canned.jobs = [RUNNING, replace(ENDED, id=JobId("old1"))]

    chosen = json.loads(muster("jobs", "--phase", "succeeded", "--name", "rin", "-o", "json").stdout)

    assert [job["id"] for job in chosen] == ["old1"]


def test_jobs_can_be_chosen_by_owner_project_and_label(muster: Muster) -> None:
    labelled = replace(RUNNING.spec, project="vision", labels={"paper": "icml", "run": "2"})
    muster.canned.jobs = [replace(RUNNING, spec=labelled), replace(RUNNING, id=JobId("old1"), owner="bea")]

    def chosen(*options: str) -> list[str]:
        return [job["id"] for job in json.loads(muster("jobs", *options, "-o", "json").stdout)]

    assert chosen("--user", "bea") == ["old1"]
    assert chosen("--user", "bea", "--user", "ada") == ["j7k2", "old1"]
    assert chosen("--project", "vision", "--label", "run=2", "--label", "paper=icml") == ["j7k2"]
    assert chosen("--mine", "--label", "paper=neurips") == []
    wrong = muster("jobs", "--label", "paper")
    assert (wrong.exit_code, "write NAME=VALUE, not 'paper'" in wrong.stderr) == (2, True)


def test_a_job_of_run_carries_labels(muster: Muster) -> None:
    done = muster("run", "-d", "--label", "paper=icml", "--label", "run=2", "true")

    assert (done.exit_code, dict(muster.canned.jobs[0].spec.labels)) == (0, {"paper": "icml", "run": "2"})


def test_one_job_is_shown_in_three_ways(muster: Muster) -> None:
    muster.canned.jobs = [FAILED]

    assert "first failure  rank 1 on b: ended with exit code 3" in muster("show", "ring").stdout
    assert json.loads(muster("show", "ring", "-o", "json").stdout)["failure"]["rank"] == 1
    assert "phase: failed\n" in muster("show", "ring", "-o", "yaml").stdout


def test_one_attempt_is_asked_for_and_shown_alone(muster: Muster) -> None:
    old = replace(attempt(execution(0, State.FAILED), execution(1, State.STOPPED), number=2), failure=values.EXIT_3)
    muster.canned.jobs = [values.job(JobPhase.FAILED, attempt(), old, attempt(number=3), ended=3)]

    text = muster("show", "ring", "--attempt", "2").stdout

    assert [request.attempt for request in muster.canned.asked_for(jobs_pb2.GetJobRequest)] == [2]
    assert "attempt 2" in text
    assert "ended with exit code 3" in text
    assert "attempt 1" not in text
    assert "attempt 3" not in text


def test_why_says_what_the_coordinator_says(muster: Muster) -> None:
    muster.canned.jobs = [RUNNING]
    muster.canned.explanation = Explanation(summary="it runs", phase=JobPhase.RUNNING)

    assert muster("why", "ring").stdout == "it runs\n"


def test_logs_come_as_they_were_printed(muster: Muster) -> None:
    muster.canned.jobs = [RUNNING]
    muster.canned.logs = [[line(b"a\xff", partial=True), line(b"no", rank=1, stream="stderr"), line(b"\x00b")]]

    assert muster("logs", "ring", "--rank", "0,1-3").stdout_bytes == b"[1]! no\n[0] a\xff\x00b\n"
    (asked,) = muster.canned.asked_for(jobs_pb2.LogsRequest)
    assert (list(asked.ranks), asked.follow) == ([0, 1, 2, 3], False)


def test_logs_as_documents_are_one_a_line(muster: Muster) -> None:
    muster.canned.jobs = [RUNNING]
    muster.canned.logs = [[line(b"a"), line(b"b", rank=1)]]

    printed = muster("logs", "ring", "-f", "-o", "json").stdout.splitlines()

    assert [(json.loads(each)["rank"], json.loads(each)["text"]) for each in printed] == [(0, "a"), (1, "b")]


@pytest.mark.parametrize("flags", [("--rank", "a"), ("--rank", "3-1"), ("--since", "yesterday")])
def test_a_filter_that_makes_no_sense_is_a_usage_error(muster: Muster, flags: tuple[str, str]) -> None:
    refused = muster("logs", "ring", *flags)

    assert refused.exit_code == ExitCode.USAGE
    assert flags[1] in refused.stderr


def test_submitting_prints_the_id_alone(muster: Muster, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: ring\nworkers: 3\ncommand: [python, ring.py]\n")

    done = muster("submit", str(file), "--set", "workers=2", "--set", "env.MODE=fast")

    assert (done.exit_code, done.stdout) == (0, "new1\n")
    assert muster.canned.jobs[0].spec.size == 2
    assert muster.canned.jobs[0].spec.roles[0].env == {"MODE": "fast"}


def test_a_job_file_can_come_from_stdin(muster: Muster) -> None:
    assert muster("submit", "-", stdin="name: ring\ncommand: [true]\n").exit_code == 0
    assert muster.canned.jobs[0].spec.roles[0].command == ("true",)


def test_a_bad_job_file_is_refused_with_the_place(muster: Muster, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: ring\nworkerz: 3\ncommand: [python, ring.py]\n")

    refused = muster("submit", str(file))

    assert refused.exit_code == ExitCode.USAGE
    assert refused.stderr.startswith(f"error: {file}:2:1: ")
    assert 'did you mean "workers"?' in refused.stderr
    assert muster.canned.asked == []


def test_following_prints_the_logs_and_ends_with_the_verdict(muster: Muster, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: ring\ncommand: [python, ring.py]\n")
    states = [replace(state, id=JobId("new1")) for state in (RUNNING, FAILED)]
    muster.canned.watches = [states]
    muster.canned.logs = [[line(b"hello"), line(b"oops", rank=1)]]

    done = muster("submit", str(file), "--follow")

    assert done.exit_code == 3  # that of the program
    assert done.stdout == "[0] hello\n[1] oops\n"
    assert done.stderr.splitlines()[-1] == "ring (new1) failed after 2.0 s: rank 1 on b: ended with exit code 3"


def test_running_a_command_submits_it_and_stays(muster: Muster) -> None:
    muster.canned.watches = [[replace(ENDED, id=JobId("new1"))]]

    done = muster(
        "run", "-N", "2", "--gpus", "1", "--memory", "1Gi", "-e", "A=b", "-p", "ring", "python", "a.py", "--lr", "3"
    )

    assert done.exit_code == 0
    (asked,) = muster.canned.asked_for(jobs_pb2.SubmitRequest)
    (role,) = asked.spec.roles
    assert (asked.spec.name, role.count, list(role.command)) == ("a", 2, ["python", "a.py", "--lr", "3"])
    assert (role.resources.gpus, role.resources.memory, dict(role.env), role.ports[0].name) == (
        1,
        2**30,
        {"A": "b"},
        "ring",
    )


def test_a_dry_run_prints_what_would_be_sent_and_whether_it_would_be_taken(muster: Muster) -> None:
    done = muster("run", "--dry-run", "-N", "2", "--", "true")

    assert done.exit_code == 0
    assert 'name: "true"\nworkers: 2\n' in done.stdout
    assert done.stderr == f"the job is valid and {muster.address} would take it\n"
    assert [request.dry_run for request in muster.canned.asked_for(jobs_pb2.SubmitRequest)] == [True]


def test_a_launcher_that_knows_of_no_other_execution_is_warned_of(muster: Muster) -> None:
    words = ("--dry-run", "-N", "2", "--", "torchrun", "train.py")
    assert "warning: train: command runs torchrun without a word about the other" in muster("run", *words).stderr
    assert "warning" not in muster("run", "--framework", "pytorch", *words).stderr


def test_a_dry_run_needs_no_coordinator() -> None:
    done = CliRunner().invoke(program(), ["--coordinator", "127.0.0.1:1", "run", "--dry-run", "-o", "json", "true"])

    assert done.exit_code == 0
    assert json.loads(done.stdout)["name"] == "true"
    assert "whether it fits was not checked" in done.stderr


def test_a_refused_job_is_an_error_in_the_coordinators_words(muster: Muster) -> None:
    muster.canned.refusals = [(Broken.FAILED_PRECONDITION, "no node has 9 GPUs")]

    done = muster("run", "--gpus", "9", "true")

    assert (done.exit_code, done.stdout, done.stderr) == (ExitCode.REFUSED, "", "error: no node has 9 GPUs\n")


@pytest.mark.parametrize(
    ("job", "code", "verdict"),
    [
        (ENDED, ExitCode.SUCCESS, "ring (j7k2) succeeded after 2.0 s"),
        (FAILED, 3, "ring (j7k2) failed after 2.0 s: rank 1 on b: ended with exit code 3"),
        (STOPPED, ExitCode.JOB_STOPPED, "ring (j7k2) stopped"),
    ],
)
def test_waiting_tells_by_its_exit_code_how_the_job_ended(
    muster: Muster,
    job: JobView,
    code: int,
    verdict: str,
) -> None:
    muster.canned.jobs = [RUNNING]
    muster.canned.watches = [[RUNNING, job]]

    done = muster("wait", "ring")

    assert (done.exit_code, done.stdout) == (code, f"{verdict}\n")


def test_waiting_gives_up_in_time(muster: Muster) -> None:
    muster.canned.jobs = [RUNNING]
    muster.canned.watches = [[RUNNING]] * 1000

    done = muster("wait", "ring", "--timeout", "50ms")

    assert (done.exit_code, done.stderr) == (
        ExitCode.UNAVAILABLE,
        "error: ring (j7k2) has not ended within 50ms\n",
    )


def test_stopping_several_goes_on_after_an_error(muster: Muster) -> None:
    muster.canned.jobs = [RUNNING]

    done = muster("stop", "nope", "ring")

    assert (done.exit_code, done.stdout, done.stderr) == (
        ExitCode.UNKNOWN_NAME,
        "j7k2 (ring) stopping\n",
        "error: there is no job nope\n",
    )


def test_deleting_a_live_job_must_be_forced(muster: Muster) -> None:
    muster.canned.jobs = [RUNNING]

    assert muster("delete", "ring").exit_code == ExitCode.REFUSED
    assert muster("delete", "--force", "ring").stdout == "j7k2 deleted\n"


def test_without_a_coordinator_the_error_says_how_to_start_one() -> None:
    done = CliRunner().invoke(program(), ["--coordinator", "127.0.0.1:1", "jobs"])

    assert done.exit_code == ExitCode.UNAVAILABLE
    assert done.stderr.startswith("error: no coordinator answers at 127.0.0.1:1; is it running? (`muster up`")


def test_the_coordinator_is_found_through_the_note_of_muster_up(muster: Muster, tmp_path: Path) -> None:
    (tmp_path / "endpoint").write_text(f"{muster.address}\n")
    environment = {"MUSTER_HOME": str(tmp_path), "MUSTER_COORDINATOR": ""}

    assert CliRunner().invoke(program(), ["jobs"], env=environment).exit_code == 0


def test_the_schema_is_json_and_the_version_a_version(muster: Muster) -> None:
    assert "properties" in json.loads(muster("schema").stdout)
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*\n", muster("version").stdout)


def test_the_shell_completes_jobs_and_nodes(muster: Muster) -> None:
    muster.canned.jobs = [RUNNING, replace(ENDED, id=JobId("old1"))]
    muster.canned.nodes = [values.node("a1"), values.node("b1")]

    assert completed(muster, "muster show j") == ["j7k2"]
    assert completed(muster, "muster show ") == ["j7k2", "old1", "ring"]
    assert completed(muster, "muster nodes b") == ["b1"]
    assert completed(muster, "muster nodes ")[-3:] == ["token", "a1", "b1"]
    assert completed(muster, "muster nodes remove b") == ["b1"]


def test_completion_stays_silent_when_nobody_answers(muster: Muster) -> None:
    muster.environment["MUSTER_COORDINATOR"] = "127.0.0.1:1"

    assert completed(muster, "muster show j") == []


def completed(muster: Muster, typed: str) -> list[str]:
    words = typed.split(" ")
    environment = {
        **muster.environment,
        "_MUSTER_COMPLETE": "complete_bash",
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(words) - 1),
    }
    return CliRunner().invoke(program(), [], env=environment, prog_name="muster").stdout.split()


@pytest.mark.parametrize("command", [("logs", "-f", "ring"), ("wait", "ring")])
def test_ctrl_c_only_leaves(muster: Muster, command: tuple[str, ...]) -> None:
    muster.canned.jobs = [RUNNING]
    muster.canned.logs = [[line(b"hello"), Pause.FOR_EVER]]
    muster.canned.watches = [[RUNNING, Pause.FOR_EVER]]

    with started(muster, *command) as program:
        asked_for(muster, jobs_pb2.LogsRequest if "logs" in command else jobs_pb2.WatchRequest)
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=20)

    assert program.returncode == ExitCode.INTERRUPTED
    assert said == "left ring (j7k2), which goes on; `muster logs -f j7k2` comes back to it\n"
    assert not muster.canned.stop_ordered.is_set()


def test_ctrl_c_in_run_stops_the_job_and_waits_for_its_end(muster: Muster) -> None:
    muster.canned.watches = [[replace(RUNNING, id=JobId("new1")), Pause.UNTIL_STOP, replace(STOPPED, id=JobId("new1"))]]

    with started(muster, "run", "--", "sleep", "60") as program:
        asked_for(muster, jobs_pb2.LogsRequest)
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=20)

    assert program.returncode == ExitCode.JOB_STOPPED
    assert said.splitlines()[-2:] == [
        "stopping sleep (new1); Ctrl-C again leaves at once",
        "ring (new1) stopped",
    ]


def test_a_second_ctrl_c_in_run_leaves_at_once(muster: Muster) -> None:
    muster.canned.watches = [[replace(RUNNING, id=JobId("new1")), Pause.FOR_EVER]]

    with started(muster, "run", "--", "sleep", "60") as program:
        asked_for(muster, jobs_pb2.LogsRequest)
        program.send_signal(signal.SIGINT)
        assert muster.canned.stop_ordered.wait(20)
        program.send_signal(signal.SIGINT)
        _, said = program.communicate(timeout=20)

    assert program.returncode == ExitCode.INTERRUPTED
    assert said.splitlines()[-1].startswith("left sleep (new1), which is being stopped")


@contextmanager
def started(muster: Muster, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """The program, as a process of its own; killed if a test leaves it running."""
    program = subprocess.Popen(
        [sys.executable, "-c", "from muster.cli.main import main; main()", *arguments],
        env={**os.environ, **muster.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with program:
        try:
            yield program
        finally:
            program.kill()


def asked_for(muster: Muster, kind: type) -> None:
    """Wait until the program has asked for this, which it does once it listens to Ctrl-C."""
    with muster.canned.heard:
        assert muster.canned.heard.wait_for(lambda: muster.canned.asked_for(kind), timeout=20)
