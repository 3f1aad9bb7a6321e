"""The node that fetches code from a repository, and what becomes of an execution whose code does not come."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from agent.code.finding import CodeFinding
from agent.code.questions import CodeQuestions
from muster.domain.data.code import GitCode, JobCode
from muster.domain.data.upload import CodePass, DepotPass
from muster.domain.fleet.secret import DeliveredSecret, SecretKind
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import Role
from muster.rpc.channel import Credentials
from tests.unit.agent.core.ledger_builders import assignment

GIT = GitCode(url="https://127.0.0.1:1/team/train.git", ref="main")
AWAITED = JobCode(git=GIT)
FOUND = JobCode(git=replace(GIT, commit="ab" * 20), tree="cd" * 32, size=80)
PASS = DepotPass(depot=":1", ticket="ticket", allowed=1)


def bringing(git: GitCode = GIT, fetch: float = 60) -> Assignment:
    role = Role(command=("true",), code=JobCode(git=git))
    return replace(assignment(), role=role, fetch=timedelta(seconds=fetch), stall=timedelta())


def finding(directory: Path, *answers: CodePass, secrets: Sequence[DeliveredSecret] = ()) -> CodeFinding:
    """One whose coordinator gives these answers, the last of them again and again."""
    left = list(answers)

    async def shown(execution: ExecutionId) -> CodePass:
        del execution
        return left.pop(0) if len(left) > 1 else left[0]

    async def keys(execution: ExecutionId) -> Sequence[DeliveredSecret]:
        del execution
        return secrets

    return CodeFinding(directory, CodeQuestions(shown=shown, keys=keys), str, Credentials)


async def test_whoever_does_not_fetch_waits_for_what_another_node_has_found(tmp_path: Path) -> None:
    told = list[str]()
    waiting = CodePass(code=AWAITED, depot=None)
    found = finding(tmp_path / "git", waiting, CodePass(code=FOUND, depot=PASS))

    assert await found.found(bringing(), told.append) == FOUND
    assert told == ["waiting for the commit, which another node of the job fetches"]
    assert not (tmp_path / "git").exists()


async def test_whoever_waits_does_so_no_longer_than_the_job_says(tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match=r"timeouts\.fetch") as failed:
        await finding(tmp_path, CodePass(code=AWAITED, depot=None)).found(bringing(fetch=0.05), lambda _: None)

    assert failed.value.kind is FailureKind.DATA


async def test_a_repository_that_stays_away_is_the_fault_of_nobody_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match=r"timeouts\.stall") as failed:
        await finding(tmp_path / "git", CodePass(code=AWAITED, depot=PASS)).found(bringing(), lambda _: None)

    assert failed.value.kind is FailureKind.DATA
    assert GIT.url in str(failed.value)
    assert list((tmp_path / "git").iterdir()) == []


async def test_a_secret_that_is_for_another_server_by_now_is_shown_to_nobody(tmp_path: Path) -> None:
    values = {"server": b"git.example.org", "username": b"robot", "token": b"t0k3n"}
    secret = DeliveredSecret(name="gitlab", kind=SecretKind.GIT, values=values)
    git = replace(GIT, secret="gitlab")
    there = finding(tmp_path, CodePass(code=JobCode(git=git), depot=PASS), secrets=[secret])
    with pytest.raises(ExecutionError, match="is not shown to it") as failed:
        await there.found(bringing(git), lambda _: None)

    assert failed.value.kind is FailureKind.DATA_REFUSED
