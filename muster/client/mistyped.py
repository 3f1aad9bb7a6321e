"""Values of a wrong type in a job that a program has made, found before anything is sent.

Job files and messages cannot have any: only Python lets `Role(command="echo hi")` pass until somebody looks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from muster.domain.errors import InvalidJobError
from muster.domain.fault import Fault, Path
from muster.domain.jobs.job import JobSpec

_PLAIN: Mapping[Any, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    bytes: "bytes",
    timedelta: "a timedelta",
    datetime: "a datetime",
}
"""Types of single values, as an error calls them."""

_LONGEST = 60
"""Characters of a wrong value that an error shows."""


def refuse_mistyped(spec: JobSpec) -> JobSpec:
    """The job, if every value in it is of its type; raises InvalidJobError with what is not."""
    found = tuple(_wrong(spec, JobSpec, ()))
    if found:
        raise InvalidJobError.of("\n".join(map(str, found)), found)
    return spec


def _wrong(value: object, hint: Any, path: Path) -> Iterator[Fault]:  # noqa: ANN401 - a type as annotations have it
    origin = get_origin(hint)
    if isinstance(hint, TypeVar) or hint is Any:
        return
    if origin in {Union, UnionType}:
        yield from _wrong_choice(value, get_args(hint), path)
    elif origin is tuple:
        yield from _wrong_sequence(value, get_args(hint)[0], path)
    elif origin is not None and issubclass(origin, Mapping):
        yield from _wrong_mapping(value, get_args(hint), path)
    else:
        yield from _wrong_single(value, origin or getattr(hint, "__supertype__", hint), path)


def _wrong_choice(value: object, choices: Sequence[Any], path: Path) -> Iterator[Fault]:
    """What is wrong for the one choice that comes nearest; nothing where any choice fits."""
    if value is None and NoneType in choices:
        return
    wrong = [tuple(_wrong(value, choice, path)) for choice in choices if choice is not NoneType]
    if all(wrong):
        # The inside of a value of the right class says more than that it is of no other class.
        yield from max(wrong, key=lambda faults: len(faults[0].path))


def _wrong_sequence(value: object, hint: Any, path: Path) -> Iterator[Fault]:  # noqa: ANN401 - as above
    if isinstance(value, str) and hint is str:
        message = f'is one text; write its words apart, or ("/bin/sh", "-c", {_shown(value)})'
        yield Fault(path=path, message=message)
    elif isinstance(value, str | bytes) or not isinstance(value, Sequence):
        yield Fault(path=path, message=f"must be a list or tuple, not {_shown(value)}")
    else:
        for number, each in enumerate(value):
            yield from _wrong(each, hint, (*path, number))


def _wrong_mapping(value: object, hints: Sequence[Any], path: Path) -> Iterator[Fault]:
    if not isinstance(value, Mapping):
        yield Fault(path=path, message=f"must be a dict, not {_shown(value)}")
        return
    for key, each in value.items():
        if not isinstance(key, str):
            yield Fault(path=path, message=f"has the key {_shown(key)}; keys are text")
        else:
            yield from _wrong(each, hints[1], (*path, key))


def _wrong_single(value: object, kind: type, path: Path) -> Iterator[Fault]:
    if is_dataclass(kind):
        if not isinstance(value, kind):
            yield Fault(path=path, message=f"must be of the class {kind.__name__}, not {_shown(value)}")
            return
        for name, hint in _fields(kind):
            yield from _wrong(getattr(value, name), hint, (*path, name))
    elif issubclass(kind, Enum):
        if value not in (allowed := [each.value for each in kind]):
            yield Fault(path=path, message=f"must be one of {', '.join(allowed)}, not {_shown(value)}")
    elif not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        meant = str(value) if kind is str and isinstance(value, int | float) else None
        yield Fault(
            path=path, message=f"must be {_PLAIN.get(kind, kind.__name__)}, not {_shown(value)}", suggestion=meant
        )


@lru_cache
def _fields(kind: type) -> tuple[tuple[str, Any], ...]:
    hints = get_type_hints(kind)
    return tuple((each.name, hints[each.name]) for each in fields(kind))


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
