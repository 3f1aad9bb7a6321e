"""Which coordinator commands ask: what was chosen, what `muster up` runs, the last login."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from muster.cli.program import program
from muster.client.endpoint import (
    Login,
    choose_login,
    coordinator_address,
    forget_login,
    keep_login,
    logins_in,
    note_up,
)

ADA = Login(address="a.example:7460", authority="A", token="t", account="ada")
BOT = Login(address="b.example:7460", authority="B", token="u", account="bot")
LOCAL = Login(address="127.0.0.1:7460", token="v", account="local")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for login in (ADA, BOT):
        keep_login(tmp_path, login)
    return tmp_path


def asked(home: Path, **environ: str) -> str:
    return coordinator_address({"MUSTER_HOME": str(home), **environ})


def muster(home: Path, *words: str, **environ: str) -> Result:
    environment = {"MUSTER_HOME": str(home), "MUSTER_COORDINATOR": "", "MUSTER_TOKEN": "", **environ}
    return CliRunner().invoke(program(words), words, env=environment)


def test_the_last_login_is_asked_until_another_is_chosen(home: Path) -> None:
    assert asked(home) == BOT.address
    choose_login(home, ADA.address)
    assert asked(home) == ADA.address
    assert asked(home, MUSTER_COORDINATOR="c:1") == "c:1"


def test_what_was_chosen_counts_until_muster_up_or_a_login_follows(home: Path) -> None:
    choose_login(home, ADA.address)
    note_up(home, LOCAL)
    assert asked(home) == LOCAL.address
    choose_login(home, ADA.address)
    assert asked(home) == ADA.address
    choose_login(home, BOT.address)
    forget_login(home, BOT.address)
    assert asked(home) == LOCAL.address


def test_who_has_logged_out_is_not_listed(home: Path) -> None:
    forget_login(home, ADA.address)
    assert logins_in(home) == (BOT,)


def test_logins_are_listed_with_a_star_at_the_one_that_is_asked(home: Path) -> None:
    shown = muster(home, "logins").stdout.splitlines()
    assert [line.split() for line in shown] == [
        ["COORDINATOR", "ACCOUNT"],
        ["a.example:7460", "ada"],
        ["*", "b.example:7460", "bot"],
    ]


def test_another_login_is_used_by_the_beginning_of_its_address(home: Path) -> None:
    assert muster(home, "logins", "use", "a.ex").stdout == "commands ask a.example:7460 from now on\n"
    assert asked(home) == ADA.address


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("c", "there is no login at 'c'; you are logged in to a.example:7460, b.example:7460"),
        ("", "'' is the beginning of"),
    ],
)
def test_a_name_that_means_no_login_or_several_is_refused(home: Path, name: str, message: str) -> None:
    refused = muster(home, "logins", "use", name)
    assert refused.exit_code
    assert message in refused.stderr
    assert asked(home) == BOT.address


def test_who_has_chosen_another_way_is_told_that_it_goes_first(home: Path) -> None:
    told = muster(home, "logins", "use", "a.ex", MUSTER_COORDINATOR="c:1").stderr
    assert told == "but MUSTER_COORDINATOR is set to c:1 here, and goes first\n"
