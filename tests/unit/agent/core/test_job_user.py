"""The user that an agent lets user code run as."""

from pathlib import Path

import pytest

from agent.core.launching.job_user import NOBODY, JobUser
from agent.settings import parse
from agent.state import locked
from muster.domain.fleet.user import numeric

LOCAL = ("--local-nodes", "2", "--token-file", "token")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), NOBODY),
        (("--job-user", "990:985"), JobUser(uid=990, gid=985)),
        (("--job-user", "990"), JobUser(uid=990, gid=990)),
        (("--job-user", "none"), None),
        (LOCAL, None),
        ((*LOCAL, "--job-user", "990"), JobUser(uid=990, gid=990)),
    ],
)
def test_it_is_nobody_but_for_local_nodes_unless_it_is_chosen(
    options: tuple[str, ...], expected: JobUser | None
) -> None:
    assert parse(("--state", "/state", *options), {}).job_user == expected


@pytest.mark.parametrize("text", ["0", "0:1000", "1000:0", "root", "muster-job", "1000:", "4294967295", "-1", ""])
def test_root_and_names_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse((f"--job-user={text}",), {})
    assert "by number and not root's" in capsys.readouterr().err


def test_numbers_are_read_as_they_are_written() -> None:
    assert str(numeric("1000")) == "1000:1000"
    assert str(numeric("1000:5")) == "1000:5"
    assert numeric("1000 ") is None
    assert numeric("\u0661") is None


def test_a_state_directory_is_made_for_the_agent_alone(tmp_path: Path) -> None:
    with locked(tmp_path / "state"):
        assert (tmp_path / "state").stat().st_mode & 0o7777 == 0o700


def test_users_for_processes_are_a_range_without_root() -> None:
    assert parse(("--process-users", "1879048192-1879048447"), {}).process_users == range(1879048192, 1879048448)
    assert parse((), {}).process_users == ()


@pytest.mark.parametrize("text", ["0-9", "9-8", "9", "a-b", "9-", "1-4294967295"])
def test_a_range_of_users_is_checked(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse((f"--process-users={text}",), {})
    assert "is no range of users" in capsys.readouterr().err
