"""Values as JSON and YAML."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
import yaml

from muster.cli.output.documents import Format, line_of, text_of
from muster.documents import Document, document
from muster.domain.jobs.lifecycle import JobPhase, State
from tests.unit.cli import values
from tests.unit.cli.values import attempt, execution

JOB = values.job(
    JobPhase.FAILED,
    attempt(execution(0, State.RUNNING, entered={State.PLACED: 1})),
    failure=values.EXIT_3,
    ended=2.5,
)


def test_a_job_has_the_keys_of_its_fields_and_its_spec_those_of_a_job_file() -> None:
    found = json.loads(text_of(JOB, Format.JSON))

    assert list(found) == [
        "id", "spec", "phase", "summary", "submitted_at", "owner", "sequence", "started_at", "ended_at", "attempts",
        "states", "failure", "reasons", "images", "presets", "origins",
    ]  # fmt: skip
    assert found["spec"]["resources"]["gpus"] == 1
    assert (found["phase"], found["started_at"], found["ended_at"]) == ("failed", None, "2026-11-21T09:30:02.500000Z")
    assert found["attempts"][0]["executions"][0]["transitions"] == [
        {"state": "placed", "at": "2026-11-21T09:30:01Z"},
    ]


def test_times_are_utc_wherever_they_come_from() -> None:
    east = datetime(2026, 11, 21, 11, 30, tzinfo=timezone(timedelta(hours=2)))

    assert document(east) == document(datetime(2026, 11, 21, 9, 30, tzinfo=UTC)) == "2026-11-21T09:30:00Z"


def test_yaml_says_what_json_says_even_to_readers_of_yaml_1_1() -> None:
    assert yaml.safe_load(text_of(JOB, Format.YAML)) == json.loads(text_of(JOB, Format.JSON))


@pytest.mark.parametrize(
    "value",
    [
        {}, [], "", "no", "22:22", "010", "1e3", "null", "~", "- a", "a: b", "a #b", "2026-11-21", "two\nlines",
        "é\x7f\u2028", [[], [[1, "x"], {}], {"a": [], "y": {"b": None}}], {"on": True, "1": 2.5},
        [{"a": 1, "b": [2]}, {"a": 3}],
    ],
)  # fmt: skip
def test_yaml_keeps_every_value(value: Document) -> None:
    assert yaml.safe_load(text_of(value, Format.YAML)) == value


def test_bytes_that_are_no_text_are_base64() -> None:
    assert document(b"caf\xc3\xa9") == "café"
    assert document(b"\xff\x00") == {"base64": "/wA="}


def test_a_log_line_is_one_line_of_json() -> None:
    assert line_of(values.line(b"a\nb", rank=2)) == (
        '{"rank": 2, "stream": "stdout", "time": "2026-11-21T09:30:00Z", "text": "a\\nb", "partial": false, '
        '"attempt": 1}\n'
    )
