"""Whatever is written, the answer is a job or a JobFileError in plain sentences."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from muster.domain.jobs.job import JobSpec
from muster.jobfile import JobFileError, load_job
from muster.jobfile.lent_keys import InputKeys, MountKeys, OutputsKeys, UlimitKeys, VolumeKeys
from muster.jobfile.models import (
    FileKeys,
    JobKeys,
    PortKeys,
    RoleKeys,
)
from muster.jobfile.section import (
    InteractiveKeys,
    OnPreemptKeys,
    ResourcesKeys,
    TimeoutsKeys,
    keys_of,
)

MODELS: list[type[BaseModel]] = [
    FileKeys,
    InteractiveKeys,
    JobKeys,
    InputKeys,
    MountKeys,
    OnPreemptKeys,
    OutputsKeys,
    PortKeys,
    ResourcesKeys,
    RoleKeys,
    TimeoutsKeys,
    UlimitKeys,
    VolumeKeys,
]
LEAKS = ("Input should", "[type=", "pydantic", "does not take", "Value error", "Scalar(")


def told(text: str) -> str | None:
    """What a person is told; None for a good job."""
    try:
        spec = load_job(text, "job.yaml")
    except JobFileError as error:
        return str(error)
    assert isinstance(spec, JobSpec)
    return None


@settings(max_examples=300)
@given(st.text())
@example('a: "\\UFFFFFFFF"')
@example("%YAML 1.99999999999999999999\n---\na")
@example("a: !<%zz> b")
@example("- - ? : - \n ! &a *a")
def test_any_text_is_a_job_or_refused(text: str) -> None:
    told(text)


TOKENS = (
    *("name", "command", "roles", "env", "x", "1", "~", "é", "\\u00e9", " ", "  ", "\t", "\n", "\n  "),
    *(": ", "- ", "? ", "[", "]", "{", "}", ", ", '"', "'", "|\n", ">-\n", "# "),
    *("&a ", "*a", "<<", "!!str ", "---\n", "...\n", "%YAML 1.2\n"),
)


@settings(max_examples=300)
@given(st.lists(st.sampled_from(TOKENS), max_size=40).map("".join))
def test_any_row_of_yaml_tokens_is_a_job_or_refused(text: str) -> None:
    told(text)


def keys() -> list[str]:
    return sorted({key for model in MODELS for key in keys_of(model)} | {"memlock", "[key]", "", "A_B", "rack"})


atoms = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["16Gi", "/a:/b", "/a", "rdzv", "bridge", "10m", "unlimited", "yes", "-1", "a" * 70]),
)
trees = st.recursive(
    atoms,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(keys()), inner, max_size=6),
    max_leaves=12,
)


@settings(max_examples=500)
@given(st.dictionaries(st.sampled_from(sorted(keys_of(JobKeys))), trees, max_size=8))
def test_any_values_under_the_keys_of_a_job_are_refused_in_plain_sentences(document: dict[str, object]) -> None:
    text = told(json.dumps({"name": "a", **document}))
    assert text is None or not [leak for leak in LEAKS if leak in text]


WRONG: tuple[object, ...] = (
    None,
    True,
    -1,
    10**20,
    1.5,
    "",
    "a\0b",
    "Ω",
    "a b",
    [],
    [None],
    [[]],
    {},
    {"": 1},
    {"x": None},
    [{"x": 1}],
)


def places() -> Iterator[tuple[str, ...]]:
    """Every key of every map of a job."""
    yield from ((key,) for key in keys_of(JobKeys))
    yield from (("resources", key) for key in keys_of(ResourcesKeys))
    yield from (("timeouts", key) for key in keys_of(TimeoutsKeys))
    yield from (("roles", "[]", key) for key in keys_of(RoleKeys))
    yield from (("ports", "[]", key) for key in keys_of(PortKeys))
    yield from (("mounts", "[]", key) for key in keys_of(MountKeys))
    yield from (("files", "[]", key) for key in keys_of(FileKeys))
    yield from (("ulimits", "core", key) for key in keys_of(UlimitKeys))
    yield from (("inputs", "data", key) for key in keys_of(InputKeys))
    yield from (("outputs", key) for key in keys_of(OutputsKeys))
    yield from (("volumes", "scratch", key) for key in keys_of(VolumeKeys))


@pytest.mark.parametrize("place", tuple(places()), ids=".".join)
def test_no_wrong_value_of_any_key_shows_the_words_of_a_library(place: tuple[str, ...]) -> None:
    for wrong in WRONG:
        value: object = wrong
        for key in reversed(place):
            value = [value] if key == "[]" else {key: value}
        assert isinstance(value, dict)
        text = told(json.dumps({"name": "a", "image": "b", **value})) or ""
        assert not [leak for leak in LEAKS if leak in text]
