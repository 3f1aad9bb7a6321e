"""The command line with many jobs at once, against a coordinator that answers from values."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.cli.exit_codes import ExitCode
from muster.rpc.v1 import jobs_pb2
from tests.integration.canned_coordinator import Broken, Canned, serving
from tests.integration.command_line import Muster

SWEEP = "name: a\nworkers: 2\ncommand: [train]\n---\nname: b\ncommand: [train]\n"


@pytest.fixture
def muster() -> Iterator[Muster]:
    canned = Canned()
    with serving(canned) as address:
        yield Muster(canned, address)


def test_several_files_and_documents_are_submitted_together(muster: Muster, tmp_path: Path) -> None:
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    (tmp_path / "more.yaml").write_text("---\nname: c\ncommand: [train]\n---\n")
    files = (str(tmp_path / "sweep.yaml"), str(tmp_path / "more.yaml"))

    plain = muster("submit", *files, "--set", "priority=7")
    listed = muster("submit", "-o", "json", *files)

    assert (plain.exit_code, plain.stdout) == (0, "new1\nnew2\nnew3\n")
    assert plain.stderr == "the 3 jobs are accepted; `muster jobs` lists them\n"
    assert json.loads(listed.stdout) == [
        {"id": "new1", "name": "a"},
        {"id": "new2", "name": "b"},
        {"id": "new3", "name": "c"},
    ]
    first, second = muster.canned.asked_for(jobs_pb2.SubmitManyRequest)
    assert [(job.spec.name, job.spec.priority) for job in first.jobs] == [("a", 7), ("b", 7), ("c", 7)]
    assert {job.spec.priority for job in second.jobs} == {0}


def test_what_is_wrong_in_any_of_several_files_is_told_at_once(muster: Muster, tmp_path: Path) -> None:
    sweep, missing = tmp_path / "sweep.yaml", tmp_path / "missing.yaml"
    sweep.write_text("name: a\nworkerz: 2\ncommand: [train]\n---\nname: b\ncommandd: [train]\n")

    refused = muster("submit", str(sweep), str(missing))

    assert refused.exit_code == ExitCode.USAGE
    assert f"{sweep}:2:1: workerz: " in refused.stderr
    assert f"{sweep}:6:1: commandd: " in refused.stderr
    assert f"cannot read the job file {missing}: No such file or directory" in refused.stderr
    assert muster.canned.asked == []


def test_refused_jobs_of_several_are_named_by_file_and_line(muster: Muster, tmp_path: Path) -> None:
    muster.canned.refused = {1: (Broken.FAILED_PRECONDITION, "no node has 9 GPUs")}
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text(SWEEP)

    for options in ((), ("--dry-run", "-o", "json")):
        refused = muster("submit", *options, str(sweep))
        assert refused.exit_code == ExitCode.REFUSED
        assert refused.stderr == f"error: none of the jobs was accepted\n{sweep}:5: b: no node has 9 GPUs\n"


def test_more_jobs_than_are_accepted_at_once_are_checked_first(muster: Muster) -> None:
    jobs = "".join(f"---\nname: a-{number}\ncommand: [train]\n" for number in range(1001))

    done = muster("submit", "-", stdin=jobs)
    asked = muster.canned.asked_for(jobs_pb2.SubmitManyRequest)

    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == 1001
    assert [(len(request.jobs), request.jobs[0].dry_run) for request in asked] == [
        (1000, True),
        (1, True),
        (1000, False),
        (1, False),
    ]


def test_a_dry_run_of_several_jobs_prints_all_of_them(muster: Muster) -> None:
    done = muster("submit", "--dry-run", "-", stdin=SWEEP)

    assert done.exit_code == 0
    assert done.stderr == f"the 2 jobs are valid and {muster.address} would take them\n"
    again = muster("submit", "-", stdin=done.stdout)
    assert (again.exit_code, again.stdout) == (0, "new1\nnew2\n")


def test_nobody_stays_with_several_jobs(muster: Muster) -> None:
    refused = muster("submit", "--follow", "-", stdin=SWEEP)

    assert refused.exit_code == ExitCode.USAGE
    assert "stays with one job; these are 2" in refused.stderr
    assert muster.canned.asked == []
