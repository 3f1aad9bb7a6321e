"""Job files that name presets: what is sent of them, and where in them that stands which a coordinator refuses."""

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.rules.job_rules import MAX_FILES_BYTES
from muster.domain.quoting import quote
from muster.jobfile.document import KEY, Listing, Loc, Node, Scalar, Table
from muster.jobfile.errors import FieldError, JobFileError, Problem
from muster.jobfile.load import LocatedErrors, all_made, located, root_in_file
from muster.jobfile.presets.job_document import JobDocument
from muster.jobfile.presets.using import ROLES_KEY, USE_KEY, UseError, named_presets

_WITH_KEY = re.compile(r"(?P<path>[A-Za-z_][\w-]*(?:\.[\w-]+|\[\d+\]|\[\"[^\"]*\"\])*): (?P<message>.+)")
_KEYS = re.compile(r"([\w-]+)|\[(\d+)\]|\[\"([^\"]*)\"\]")
_OF_PRESET = re.compile(r" \(from \w+ \S+@\d+ of [^()]+\)$")
"""The end of what is wrong with a value of a preset, which stands in no line of the file."""


def all_described(
    text: str, source: str, *, base: Path | None, overrides: Mapping[str, Any]
) -> tuple[tuple[int, JobSpec | JobDocument], ...]:
    """See `muster.jobfile.presets.described_jobs`."""

    def described(root: Table) -> JobDocument | None:
        return _described(root, base) if USE_KEY in root.entries else None

    return all_made(text, source, base=base, overrides=overrides, made=described)


def placed(message: str, source: str, text: str, *, number: int, overrides: Mapping[str, Any]) -> JobFileError | None:
    """See `muster.jobfile.presets.refused_in_document`."""
    root = root_in_file(text, number, overrides)
    if root is None:
        return None
    found = [_problem(line, root) for line in message.splitlines()]
    return JobFileError(source, found, text) if any(problem.field for problem in found) else None


def _problem(line: str, root: Table) -> Problem:
    match = _WITH_KEY.fullmatch(line)
    if match is None or _OF_PRESET.search(line):
        return Problem(line=0, column=0, field="", message=line)
    parts = _KEYS.findall(match["path"])
    loc: Loc = tuple(int(number) if number else name or quoted for name, number, quoted in parts)
    if match["message"].startswith("unknown key"):
        loc = (*loc, KEY)  # it is the key itself that is wrong, and not its value
    return located(root, loc, FieldError(match["message"]))


def _described(root: Table, base: Path | None) -> JobDocument:
    found: list[tuple[Loc, FieldError]] = []
    try:
        named_presets(root)
    except UseError as error:
        found.append((error.place, error))
    left = [MAX_FILES_BYTES]
    local = _with_local(root, (), base, left, found)
    entries = dict(local.entries)
    match entries.get(ROLES_KEY):
        case Listing() as roles:
            items = (_in_role(each, number, base, left, found) for number, each in enumerate(roles.items))
            entries[ROLES_KEY] = replace(roles, items=tuple(items))
        case Table() as roles:
            named = {name: _in_role(each, name, base, left, found) for name, each in roles.entries.items()}
            entries[ROLES_KEY] = replace(roles, entries=named)
    if found:
        raise LocatedErrors(root, found)
    return JobDocument(root=replace(root, entries=entries))


def _in_role(role: Node, part: str | int, base: Path | None, left: list[int], found: "_Found") -> Node:
    return _with_local(role, (ROLES_KEY, part), base, left, found) if isinstance(role, Table) else role


def _with_local(table: Table, at: Loc, base: Path | None, left: list[int], found: "_Found") -> Table:
    """The map with the content of files beside the job file, and with folders by their whole path."""
    entries = dict(table.entries)
    try:
        if "code" in entries:
            place: Loc = (*at, "code")
            entries["code"] = _code(entries["code"], base)
        if isinstance(files := entries.get("files"), Listing):
            place = (*at, "files")
            entries["files"] = replace(files, items=tuple(_files(files, base, left)))
    except FieldError as error:
        found.append((place, error))
    return replace(table, entries=entries)


def _files(files: Listing, base: Path | None, left: list[int]) -> Iterator[Node]:
    from muster.jobfile.build import read_beside  # noqa: PLC0415 - models only for a job file that names presets

    for file in files.items:
        source = file.entries.get("source") if isinstance(file, Table) else None
        if not isinstance(file, Table) or not isinstance(source, Scalar) or source.value is None:
            yield file
            continue
        content = read_beside(source.text, base)
        left[0] -= len(content)
        if left[0] < 0:
            raise FieldError(f"hold more than {MAX_FILES_BYTES // 2**20} MiB")
        text = base64.b64encode(content).decode()
        kept = {key: value for key, value in file.entries.items() if key != "source"}
        yield replace(file, entries={**kept, "content_base64": Scalar(value=text, text=text)})


def _code(code: Node, base: Path | None) -> Node:
    named = code.entries.get("folder") if isinstance(code, Table) else code
    if not isinstance(named, Scalar) or named.value is None:
        return code
    folder = None if base is None else base / named.text
    if folder is None or not folder.is_dir():
        why = "cannot be read here" if folder is None else f"{quote(str(folder), most=4096)} is no folder"
        raise FieldError(f"{why}; `muster upload` sends one, and prints its tree")
    whole = Scalar(value=str(folder), text=str(folder), at=named.at)
    return replace(code, entries={**code.entries, "folder": whole}) if isinstance(code, Table) else whole


_Found = list[tuple[Loc, FieldError]]
