"""Plain jobs are read as all others are, only sooner."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.jobs.job import JobSpec, Packing, Resources, Role
from muster.domain.jobs.rules.filling_in import filled_in
from muster.jobfile import JobFileError, load_job
from muster.jobfile.checking import checked
from muster.jobfile.document import Table, read
from muster.jobfile.load import from_values
from muster.jobfile.plain import plain_job

_TEXT = st.one_of(
    st.sampled_from(["", " ", "a", "-", "A", "a-b", "a" * 64, "0.1", "1.0005", "500m", "0", "1e3", "spread", "rank0"]),
    st.sampled_from(["\0", "\ud800", "default", " 2", "-1", "all", "pack"]),
    st.text(max_size=5),
)
_VALUE = st.one_of(
    _TEXT, st.integers(-1001, 10_001), st.booleans(), st.none(), st.floats(), st.lists(_TEXT, max_size=2)
)
_RESOURCES = st.dictionaries(st.sampled_from(["cpus", "gpus", "memory"]), _VALUE, max_size=3)
_KEYS = ("workers", "placement", "max_per_node", "priority", "project", "success", "image", "env")
_DOCUMENT = st.builds(
    lambda name, command, resources, others: {"name": name, "command": command, "resources": resources, **others},
    st.one_of(st.just("a"), _VALUE),
    st.one_of(st.just(["true"]), st.lists(_VALUE, max_size=3), _VALUE),
    st.one_of(_RESOURCES, _VALUE),
    st.dictionaries(st.sampled_from(_KEYS), _VALUE, max_size=3),
)


@given(_DOCUMENT)
def test_a_plain_job_is_the_job_that_every_reader_finds(document: dict[str, object]) -> None:
    plain = plain_job(document)
    assert plain is None or plain == _read(document)


def test_the_keys_of_plain_jobs_are_understood() -> None:
    document = {
        "name": "a",
        "workers": 3,
        "command": ["echo", "a b", ""],
        "resources": {"cpus": "0.1", "gpus": 2},
        "placement": Packing.SPREAD,
        "max_per_node": 1,
        "priority": -5,
        "project": "p",
        "success": "rank0",
    }
    plain = plain_job(document)
    assert plain is not None
    assert plain == _read(document)
    assert plain.size == 3


def test_a_name_and_a_command_are_enough() -> None:
    role = Role(command=("true",), resources=Resources(cpu_millis=1000))
    assert plain_job({"name": "a", "command": ["true"]}) == filled_in(JobSpec(name="a", roles=(role,)))


@pytest.mark.parametrize(
    "document",
    [
        {"name": "a"},
        {"command": ["true"]},
        {"name": "a", "command": []},
        {"name": "a", "command": "true"},
        {"name": "a", "command": ["true"], "image": "busybox"},
        {"name": "a", "command": ["true"], "resources": None},
        {"name": "a", "command": ["true"], "workers": True},
        {"name": "a", "command": ["true"], "max_per_node": None},
    ],
)
def test_what_is_not_plain_is_left_to_others(document: dict[str, object]) -> None:
    assert plain_job(document) is None


def _read(document: dict[str, object]) -> JobSpec | JobFileError:
    try:
        return from_values(document, "test", base=None)
    except JobFileError as error:
        return error


_SPELLINGS = (
    *("a", "5", "05", "0x10", "0o17", "1e3", "0.1", ".5", "1_000", "+5", "-5", "500m", '"5"', '"a"', "12:30"),
    *("true", "True", "yes", "null", "~", "''", "spread", "rank0", "[5]", "{a: 5}", "a b", "|\n  a"),
)


@pytest.mark.parametrize(
    "key", ["name", "command", "workers", "resources", "placement", "priority", "project", "success"]
)
@pytest.mark.parametrize("spelling", _SPELLINGS)
def test_a_file_is_read_the_same_however_its_values_are_spelled(key: str, spelling: str) -> None:
    lines = {"name": "a", "command": "[echo]", key: spelling}
    if key == "command":
        lines[key] = f"[echo, {spelling}]" if "\n" not in spelling else spelling
    if key == "resources":
        lines[key] = f"{{cpus: {spelling}}}" if "\n" not in spelling else spelling
    text = "".join(f"{name}: {value}\n" for name, value in lines.items())
    root = read(text).root
    assert isinstance(root, Table)
    spec, found = checked(root, None)
    if found:
        with pytest.raises(JobFileError):
            load_job(text, "x")
    else:
        assert load_job(text, "x") == spec
