"""Which commands the program has for a command line."""

import pytest
from typer import Typer
from typer.main import get_command
from typer.testing import CliRunner

from muster.cli.program import program

ALL = sorted(get_command(program()).commands)  # type: ignore[attr-defined]  # Typer makes a group of several commands


def names(app: Typer) -> list[str]:
    return sorted(get_command(app).commands)  # type: ignore[attr-defined]  # Typer makes a group of several commands


@pytest.mark.parametrize("name", ALL)
def test_a_command_line_is_answered_by_the_command_it_calls(name: str) -> None:
    assert name in names(program((name, "--help")))


def test_of_commands_that_are_started_often_no_other_is_made() -> None:
    assert names(program(("run", "-N", "2", "--", "true"))) == ["run"]
    assert names(program(("--coordinator", "there:1", "jobs"))) == ["jobs"]


def test_all_commands_are_there_for_who_asks_what_there_is() -> None:
    assert names(program(("--help",))) == ALL
    assert {"run", "jobs", "nodes", "users"} <= set(ALL)


@pytest.mark.parametrize("noun", ["users", "accounts", "projects", "secrets", "tokens", "bundles", "nodes token"])
def test_a_noun_alone_lists(noun: str) -> None:
    """Options alone are those of the list: the same one is refused in the same way."""
    words = noun.split()
    [short, long] = [
        CliRunner().invoke(program((words[0],)), [*words, *more, "-o", "nonsense"]) for more in ((), ("list",))
    ]
    assert "nonsense" in short.output
    assert (short.exit_code, short.output) == (long.exit_code, long.output)


def test_a_noun_still_tells_of_its_commands() -> None:
    told = CliRunner().invoke(program(("projects",)), ["projects", "--help"])
    assert (told.exit_code, "grant" in told.output) == (0, True)
