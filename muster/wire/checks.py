"""What a message from a peer must satisfy before it becomes a value; each check names message and field."""

import re
from collections.abc import Iterable, Sequence, Sized
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from muster.domain.errors import MusterError
from muster.domain.jobs.rules.job_values import LABEL, MAX_EXECUTIONS, MAX_PORT
from muster.domain.visible_text import hidden_in, visible

MAX_SIZE = MAX_EXECUTIONS
"""Executions in one job; far above any fleet that one coordinator serves, far below what would exhaust it."""
MAX_JOBS = 1000
"""Jobs submitted with one call: each waits until all are checked, and so does everybody else."""
MAX_BYTES = 2**63 - 1
"""Sizes in bytes fit a signed 64-bit integer, as databases keep them."""
MAX_COUNT = 2**31 - 1
"""Other whole numbers."""

MAX_TEXT = 1024
"""Characters of a name, a version, a sentence."""
MAX_MESSAGE = 16 * 1024
"""Characters of a message for people; what is longer is cut."""
MAX_TAIL = 100
"""Last lines of a log in a failure."""
MAX_PARTS = 1024
"""GPUs, addresses, labels, processes and the like of one thing; far above any machine."""

LONGEST_SPAN = timedelta(days=3650)
LATEST_MOMENT = datetime(9000, 1, 1, tzinfo=UTC)
"""Times and lengths of time are added up; beyond these nobody means them, and no calendar has their sums."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY = 24 * 60 * 60
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}")
_LABEL = re.compile(LABEL)
_PORT_NAME = re.compile(r"[a-z]([a-z0-9_-]{0,61}[a-z0-9])?")
_ADDRESS = re.compile(r"[A-Za-z0-9_.:%-]{1,253}")

Word = TypeVar("Word", bound=StrEnum)


class WireError(MusterError):
    """A message from a peer is not valid; names the message and the field."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where} {problem}")
        self.message, _, self.field = where.partition(".")
        self.problem = problem


def require(message: Message, *fields: str) -> None:
    """Refuse a message that lacks one of these sub-messages."""
    for field in fields:
        if not message.HasField(field):
            raise WireError(f"{message.DESCRIPTOR.name}.{field}", "is missing")


def word(kind: type[Word], value: str, where: str) -> Word:
    """The member of a closed vocabulary that a peer wrote as text."""
    try:
        return kind(value)
    except ValueError:
        raise WireError(where, f"is {value!r}; known are {', '.join(kind)}") from None


def between(value: int, low: int, high: int, where: str) -> int:
    """A number within its limits, both included."""
    if not low <= value <= high:
        raise WireError(where, f"is {value}; it must be between {low} and {high}")
    return value


def port(value: int, where: str) -> int:
    """A port number that can be bound and reached."""
    return between(value, 1, MAX_PORT, where)


def size(value: int, where: str) -> int:
    """A number of bytes."""
    return between(value, 0, MAX_BYTES, where)


def text(value: str, where: str) -> str:
    """A short text, kept as it is."""
    if len(value) > MAX_TEXT:
        raise WireError(where, f"has {len(value)} characters; at most {MAX_TEXT} are taken")
    return value


def plain(value: str, where: str) -> str:
    """A text of one line, every character of which can be seen: it names something, and is shown to others."""
    hidden = hidden_in(value)
    if hidden is not None:
        raise WireError(where, f"has the character {visible(hidden)}, which cannot be seen or acts on a terminal")
    return value


def few(values: Sized, where: str) -> None:
    """Refuse a list that is longer than anything real."""
    if len(values) > MAX_PARTS:
        raise WireError(where, f"has {len(values)} entries; at most {MAX_PARTS} are taken")


def message(value: str) -> str:
    """A message for people, cut if it is far too long to be read."""
    return value if len(value) <= MAX_MESSAGE else value[:MAX_MESSAGE] + "…"


def identifier(value: str, where: str) -> str:
    """An id that is safe in file names and container names."""
    return _matching(_IDENTIFIER, value, where, "letters, digits, dots, hyphens and underscores")


def label(value: str, where: str) -> str:
    """A name that is safe as a host name."""
    return _matching(_LABEL, value, where, "at most 63 lower-case letters, digits and inner hyphens")


def port_name(value: str, where: str) -> str:
    """The name of a port; it becomes part of an environment variable's name."""
    return _matching(_PORT_NAME, value, where, "a lower-case word")


def address(value: str, where: str) -> str:
    """An address or host name; it is written into files line by line."""
    return _matching(_ADDRESS, value, where, "an IP address or a host name")


def words(values: Iterable[str], where: str) -> tuple[str, ...]:
    """Texts that a program can be given: without NUL."""
    result = tuple(values)
    if any("\0" in value for value in result):
        raise WireError(where, "contains a NUL character")
    return result


def absolute(value: str, where: str) -> str:
    """An absolute path."""
    if not value.startswith("/"):
        raise WireError(where, f"is {value!r}; it must be an absolute path")
    return words((value,), where)[0]


def unique(values: Sequence[str], where: str) -> None:
    """Refuse a list that names something twice."""
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise WireError(where, f"has {value!r} twice")
        seen.add(value)


def moment(value: Timestamp, where: str) -> datetime:
    """A time in UTC, to the microsecond."""
    try:
        result = _EPOCH + timedelta(0, value.seconds, value.nanos // 1000)
    except OverflowError:
        raise _no_moment(value, where) from None
    if not _EPOCH <= result <= LATEST_MOMENT:
        raise _no_moment(value, where)
    return result


def _no_moment(value: Timestamp, where: str) -> WireError:
    problem = f"is {value.seconds} seconds after 1970; it must be between 1970 and {LATEST_MOMENT.year}"
    return WireError(where, problem)


def optional_moment(message: Message, field: str) -> datetime | None:
    """The time in a field of that message; None where it is absent."""
    if not message.HasField(field):
        return None
    return moment(getattr(message, field), f"{message.DESCRIPTOR.name}.{field}")


def span(value: Duration, where: str) -> timedelta:
    """A length of time, not negative and not beyond reason, to the microsecond."""
    try:
        result = timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
    except OverflowError:
        raise WireError(where, f"is {value.seconds} seconds, which is too long") from None
    if result < timedelta(0):
        raise WireError(where, f"is {result.total_seconds():g} seconds; it must not be negative")
    if result > LONGEST_SPAN:
        raise WireError(where, f"is {result.total_seconds():g} seconds; at most {LONGEST_SPAN.days} days are taken")
    return result


def optional_span(message: Message, field: str) -> timedelta | None:
    """The length of time in a field of that message; None where it is absent."""
    if not message.HasField(field):
        return None
    return span(getattr(message, field), f"{message.DESCRIPTOR.name}.{field}")


def timestamp(value: datetime | None) -> Timestamp | None:
    """The message for a time; None for None, which leaves the field absent."""
    if value is None:
        return None
    since = value - _EPOCH  # a third of the time of FromDatetime, and a job has six for each execution
    return Timestamp(seconds=since.days * _DAY + since.seconds, nanos=since.microseconds * 1000)


def duration(value: timedelta | None) -> Duration | None:
    """The message for a length of time; None for None, which leaves the field absent."""
    if value is None:
        return None
    return Duration(seconds=value.days * _DAY + value.seconds, nanos=value.microseconds * 1000)


def _matching(pattern: re.Pattern[str], value: str, where: str, wanted: str) -> str:
    if not pattern.fullmatch(value):
        raise WireError(where, f"is {value[:80]!r}; it must be {wanted}")
    return value
