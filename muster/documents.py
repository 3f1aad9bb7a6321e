"""Values of the domain as plain data, in the one form in which programs get them: from commands and over HTTP.

Keys are field names, times are ISO 8601 in UTC, spans are seconds, and a job's `spec` has the keys of a job file.
"""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from functools import cache
from typing import Any, TypeAlias

from muster.domain.jobs.job import JobSpec

Document: TypeAlias = "str | int | float | bool | list[Document] | dict[str, Document] | None"


_ATOMS = frozenset({str, int, float, bool, type(None)})


def document(value: object) -> Document:
    """Any value of the domain as plain data; a job's `spec` has the keys of a job file."""
    kind = type(value)
    if kind in _ATOMS:  # most values are
        return value  # type: ignore[return-value]  # its type has just been looked at
    if isinstance(value, JobSpec):
        from muster.jobfile import dump_job  # noqa: PLC0415 - most values hold no job

        return document(dump_job(value))
    if (names := _field_names(kind)) is not None:  # type: ignore[arg-type]  # types are hashable
        return {name: document(getattr(value, name)) for name in names}
    if isinstance(value, Mapping):
        return {str(document(key)): document(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [document(item) for item in value]
    return _plain(value)


@cache  # there are few types, and a list of a hundred jobs has thousands of values
def _field_names(kind: type[Any]) -> tuple[str, ...] | None:
    """The fields of a dataclass; None: it is none."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


def _plain(value: object) -> Document:
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (set, frozenset)):
        return sorted((document(item) for item in value), key=str)
    if isinstance(value, bytes):
        return _text_or_base64(value)
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise TypeError(f"{type(value).__name__} is not a value of the domain")


def _text_or_base64(data: bytes) -> Document:
    try:
        return data.decode()
    except UnicodeDecodeError:
        from base64 import b64encode  # noqa: PLC0415 - seldom

        return {"base64": b64encode(data).decode()}
