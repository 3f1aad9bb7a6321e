"""Presets as files have them."""

from collections.abc import Mapping
from typing import Any

from muster.domain.fleet.policies.preset import PresetKind
from muster.jobfile.document import START, Atom, Scalar, Table, UnreadableError, read, spell, unfold
from muster.jobfile.errors import JobFileError, Problem
from muster.jobfile.load import located, unreadable
from muster.jobfile.presets.faults import fragment_problems


def from_text(text: str, source: str, of: PresetKind) -> Mapping[str, Any]:
    """See `muster.jobfile.presets.load_preset`."""
    try:
        document = read(text)
    except UnreadableError as error:
        raise unreadable(source, text, error) from None
    root = document.root
    if not isinstance(root, Table):
        at = START if root is None else root.at
        raise JobFileError(source, [Problem(line=at.line, column=at.column, field="", message=_no_map(root))], text)
    problems = [
        Problem(line=it.at.line, column=it.at.column, field=spell(it.path), message="stands here a second time")
        for it in document.repeated
    ]
    problems += [located(root, loc, error) for loc, error in fragment_problems(root, of)]
    if problems:
        raise JobFileError(source, problems, text)
    values: Mapping[str, Any] = unfold(root, atom_of)
    return values


def atom_of(scalar: Scalar) -> Atom:
    """A single value as JSON has it: the text as it was written, unless that is how JSON spells the value."""
    value = scalar.value
    if value is None or (isinstance(value, str) and value == scalar.text):
        return value
    spelled = {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
    return value if spelled == scalar.text else scalar.text


def _no_map(root: object) -> str:
    return "is empty; a preset has keys of a job file" if root is None else "must be a map with keys of a job file"
