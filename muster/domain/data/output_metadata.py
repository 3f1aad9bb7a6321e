"""What user code says of the files that it leaves: beside each, or in one list, in the forms of Valohai."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muster.domain.data.tree import ContentEntry

METADATA_SUFFIX = ".metadata.json"
"""What the name of a file has at its end that tells of the one beside it."""
METADATA_LIST = "valohai.metadata.jsonl"
"""The file at the top of an outputs directory that tells of others, each on a line of its own."""
MOST_FILE_METADATA = 64 * 1024
"""Bytes of what is said of one file."""
MOST_METADATA_LIST = 16 * 1024 * 1024
"""Bytes of the list."""
MOST_METADATA_READ = 64 * 1024 * 1024
"""Bytes of all metadata of one execution that are read."""
DEEPEST_METADATA = 32
"""Maps and lists inside each other."""

_NO_OBJECT = "is no JSON object"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputMetadata:
    """What was said of files, and what nobody could understand of it."""

    of_files: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What was said of a file, by the path of that file."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Why files of metadata count as any other file, by their paths."""
    read: frozenset[str] = frozenset()
    """Files that say all this, which nobody need list."""


def metadata_files(entries: Sequence[ContentEntry], left: int = MOST_METADATA_READ) -> Sequence[ContentEntry]:
    """The files of a tree that tell of others, as far as their names and sizes say so; no more than `left` bytes."""
    paths = {each.path for each in entries if not each.is_link}
    found: list[ContentEntry] = []
    for each in entries:
        if each.path not in paths or not _tells_of_others(each, paths) or each.size > left:
            continue
        left -= each.size
        found.append(each)
    return found


def _tells_of_others(entry: ContentEntry, paths: set[str]) -> bool:
    if entry.path == METADATA_LIST:
        return entry.size <= MOST_METADATA_LIST
    about = entry.path.removesuffix(METADATA_SUFFIX)
    return about != entry.path and about in paths and entry.size <= MOST_FILE_METADATA


def read_metadata(contents: Iterable[tuple[str, bytes]], paths: frozenset[str]) -> OutputMetadata:
    """What files of metadata say of the files at these paths; where two say something of a key, the list counts."""
    beside: dict[str, Mapping[str, Any]] = {}
    listed: dict[str, Mapping[str, Any]] = {}
    faults: dict[str, str] = {}
    asked: set[str] = set()
    for path, content in contents:
        asked.add(path)
        if path == METADATA_LIST:
            for line, (about, said) in enumerate(_lines(content), start=1):
                if said is None:
                    faults.setdefault(path, f"line {line} {about}")
                elif about not in paths:
                    faults.setdefault(path, f"line {line} is about a file that is not there")
                else:
                    listed[about] = {**listed.get(about, {}), **said}
        elif (said := _json_object(content)) is None:
            faults[path] = _NO_OBJECT
        else:
            beside[path.removesuffix(METADATA_SUFFIX)] = said
    about_all = sorted({*beside, *listed})
    return OutputMetadata(
        of_files={path: {**beside.get(path, {}), **listed.get(path, {})} for path in about_all},
        faults=faults,
        read=frozenset(asked - faults.keys()),
    )


def _lines(content: bytes) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """The path and what is said of each line of the list; None as the second: the first says what is wrong."""
    for line in content.splitlines():
        entry = _json_object(line) if line.strip() and len(line) <= MOST_FILE_METADATA else None
        file, said = (None, None) if entry is None else (entry.get("file"), entry.get("metadata"))
        if len(line) > MOST_FILE_METADATA:
            yield f"has more than {MOST_FILE_METADATA} bytes", None
        elif isinstance(file, str) and isinstance(said, dict):
            yield file.removeprefix("./"), said
        else:
            yield f"{_NO_OBJECT} with file and metadata", None


def _json_object(content: bytes) -> Mapping[str, Any] | None:
    """A JSON object that may be written as JSON again; None: it is none."""
    try:
        value = json.loads(content)
        if not isinstance(value, dict) or not _is_shallow(value, DEEPEST_METADATA):
            return None
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()  # neither infinite numbers nor half characters
    except (ValueError, RecursionError):
        return None
    return value


def _is_shallow(value: object, levels: int) -> bool:
    if isinstance(value, (dict, list)):
        inside = value.values() if isinstance(value, dict) else value
        return levels > 0 and all(_is_shallow(each, levels - 1) for each in inside)
    return True
