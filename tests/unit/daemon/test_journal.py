"""What the programs log of text from others."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence

import pytest

from agent.settings import AgentSettings
from agent.settings import parse as agent_settings
from coordinator.settings import CoordinatorSettings
from coordinator.settings import parse as coordinator_settings
from muster.daemon.journal import LONGEST_TEXT, FieldFormatter, JsonFormatter
from muster.domain.jobs.lifecycle import State
from tests.hostile_text import FORGED, HOSTILE, harm_in


def told(message: str, *arguments: object, **fields: object) -> str:
    """A line of the journal, without the time."""
    record = logging.getLogger("test").makeRecord("test", logging.INFO, "f", 1, message, arguments, None, extra=fields)
    return FieldFormatter().format(record).partition(" ")[2]


def test_a_line_has_a_sentence_and_fields() -> None:
    assert told("execution moved", execution="j-1-0", to="running") == "info execution moved execution=j-1-0 to=running"


def told_as_json(message: str, exception: Exception | None = None, **fields: object) -> dict[str, object]:
    raised = None if exception is None else (type(exception), exception, None)
    record = logging.getLogger("test").makeRecord("test", logging.INFO, "f", 1, message, (), raised, extra=fields)
    [line] = JsonFormatter().format(record).splitlines()
    assert harm_in(line) == []
    told = json.loads(line)
    assert isinstance(told, dict)
    assert str(told.pop("time")).endswith("Z")
    return told


def test_a_line_may_be_one_json_object() -> None:
    assert told_as_json("execution moved", execution="j-1-0", attempt=1, to=State.RUNNING, failure=None) == {
        "level": "info",
        "message": "execution moved",
        "execution": "j-1-0",
        "attempt": 1,
        "to": "running",
        "failure": None,
    }


def test_text_from_others_stays_in_its_field_of_a_json_object() -> None:
    told = told_as_json("refused", node=f"a{HOSTILE}{FORGED}", level="forged", cause="x" * (LONGEST_TEXT + 1))

    assert told.keys() == {"level", "message", "node", "cause"}
    assert (told["level"], len(str(told["cause"]))) == ("info", LONGEST_TEXT + 1)


def test_a_traceback_is_a_field_of_the_json_object() -> None:
    assert "ValueError: bad" in str(told_as_json("failed", ValueError(f"bad{FORGED}"))["traceback"])


@pytest.mark.parametrize("program", [coordinator_settings, agent_settings])
def test_the_form_of_the_journal_is_chosen_by_option_or_by_variable(
    program: Callable[[Sequence[str], Mapping[str, str]], CoordinatorSettings | AgentSettings],
) -> None:
    assert program((), {}).log_format == "text"
    assert program(("--log-format", "json"), {}).log_format == "json"
    assert program((), {"MUSTER_LOG_FORMAT": "json"}).log_format == "json"
    with pytest.raises(SystemExit):
        program((), {"MUSTER_LOG_FORMAT": "xml"})


def test_text_from_others_cannot_begin_a_line() -> None:
    line = told(f"of a library: {HOSTILE}{FORGED}", node=f"a{HOSTILE}{FORGED}", cause=FORGED)

    assert harm_in(line) == []
    assert len(line.splitlines()) == 1


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a to=running", '"a to=running"'),
        ('a" to="b', r'"a\" to=\"b"'),
        ("a=b", '"a=b"'),
        ("", '""'),
        (r"a\ b", r'"a\\ b"'),
        (3, "3"),
    ],
)
def test_text_from_others_cannot_forge_a_field(value: object, shown: str) -> None:
    assert told("moved", node=value) == f"info moved node={shown}"


def test_a_field_is_cut_where_it_would_be_very_long() -> None:
    assert told("refused", cause="x" * (LONGEST_TEXT + 1)) == f"info refused cause={'x' * LONGEST_TEXT}…"


def test_no_line_of_a_traceback_looks_like_one_of_the_journal() -> None:
    error = ValueError(f"2026-01-01T00:00:00.000Z info forged{FORGED}2026-01-01T00:00:00.000Z{HOSTILE}")
    raised = (ValueError, error, None)
    record = logging.getLogger("test").makeRecord("test", logging.ERROR, "f", 1, "failed", (), raised)
    first, *below = FieldFormatter().format(record).splitlines()

    assert first.endswith("error failed")
    assert [line for line in below if not line.startswith("  ")] == []
    assert [line for line in below if harm_in(line.expandtabs())] == []
