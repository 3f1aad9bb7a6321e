"""What user code says of the files that it leaves, in the forms of Valohai."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.data.output_metadata import (
    DEEPEST_METADATA,
    METADATA_LIST,
    MOST_FILE_METADATA,
    MOST_METADATA_LIST,
    OutputMetadata,
    metadata_files,
    read_metadata,
)
from muster.domain.data.tree import ContentEntry, ContentKind

PATHS = frozenset({"model.pt", "plots/loss.png"})


def entry(path: str, size: int = 10, kind: ContentKind = ContentKind.FILE) -> ContentEntry:
    return ContentEntry(path=path, kind=kind, size=size, content="a" * 64)


def chosen(*entries: ContentEntry) -> list[str]:
    return [each.path for each in metadata_files(entries)]


def read(**contents: bytes) -> OutputMetadata:
    """What these contents say: `beside` stands beside the model, `list` is the list."""
    names = {"beside": "model.pt.metadata.json", "list": METADATA_LIST}
    return read_metadata(((names[name], content) for name, content in contents.items()), PATHS)


def lines(*said: Any) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in said)


def test_files_beside_others_and_the_list_at_the_top_tell_of_files() -> None:
    tree = [entry(path) for path in ("a.pt", "a.pt.metadata.json", "b/c", "b/c.metadata.json", METADATA_LIST)]
    assert chosen(*tree) == ["a.pt.metadata.json", "b/c.metadata.json", METADATA_LIST]


@pytest.mark.parametrize(
    "other",
    [
        entry("b.pt.metadata.json"),
        entry("a.pt.metadata.json", MOST_FILE_METADATA + 1),
        entry(f"b/{METADATA_LIST}"),
        entry(METADATA_LIST, MOST_METADATA_LIST + 1),
        entry(".metadata.json"),
        entry("a.pt.metadata.json", 4, ContentKind.LINK),
    ],
    ids=lambda each: f"{each.path}-{each.size}",
)
def test_others_are_files_like_any_other(other: ContentEntry) -> None:
    assert chosen(entry("a.pt"), other) == []


def test_no_more_is_read_than_memory_has_room_for() -> None:
    large = [each for number in range(2000) for each in (entry(f"{number}"), entry(f"{number}.metadata.json", 2**16))]
    assert len(chosen(*large)) == 1024


def test_both_forms_are_read_and_the_list_counts_where_they_differ() -> None:
    said = read(
        beside=b'{"stage": "old", "loss": 0.5}',
        list=lines(
            {"file": "model.pt", "metadata": {"stage": "new"}},
            {"file": "./plots/loss.png", "metadata": {"valohai.tags": ["plot"]}},
        ),
    )
    assert said == OutputMetadata(
        of_files={"model.pt": {"stage": "new", "loss": 0.5}, "plots/loss.png": {"valohai.tags": ["plot"]}},
        read=frozenset({"model.pt.metadata.json", METADATA_LIST}),
    )


DEEP = b'{"a":' * DEEPEST_METADATA + b"{}" + b"}" * DEEPEST_METADATA


@pytest.mark.parametrize(
    "wrong",
    [b"", b"[1]", b"{", b'{"a": NaN}', b'{"a": 1e999}', b'{"a": "\\ud800"}', b"\xff", b'{"a":' * 100_000, DEEP],
    ids=lambda each: str(each[:12]),
)
def test_what_is_no_json_object_counts_as_any_other_file(wrong: bytes) -> None:
    assert read(beside=wrong) == OutputMetadata(faults={"model.pt.metadata.json": "is no JSON object"})


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lines([]), "line 2 is no JSON object with file and metadata"),
        (lines({"file": "model.pt"}), "line 2 is no JSON object with file and metadata"),
        (lines({"file": 1, "metadata": {}}), "line 2 is no JSON object with file and metadata"),
        (lines({"file": "other", "metadata": {}}), "line 2 is about a file that is not there"),
        (lines({"file": "model.pt", "metadata": {"a": "b" * 2**16}}), "line 2 has more than 65536 bytes"),
        (b"\n", "line 2 is no JSON object with file and metadata"),
    ],
)
def test_the_first_wrong_line_of_the_list_is_told_and_the_others_count(wrong: bytes, why: str) -> None:
    first, last = ({"file": "model.pt", "metadata": {name: 1}} for name in ("first", "last"))
    assert read(list=lines(first) + wrong + lines(last)) == OutputMetadata(
        of_files={"model.pt": {"first": 1, "last": 1}}, faults={METADATA_LIST: why}
    )


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_whatever_lies_there_is_told_or_a_fault(beside: bytes, listed: bytes) -> None:
    said = read(beside=beside, list=listed)
    assert json.loads(json.dumps(said.of_files)).keys() <= PATHS
