"""What agent and mover say to each other: lines of JSON over two pipes, each with the number of its question."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from muster.domain.data.buckets.listing import StoredObject
from muster.transfer.store_access import StoreAccess

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes of one line; a list of objects is one."""


class MoverAsk(StrEnum):
    """What the mover is asked."""

    LIST = "list"  #: which objects a URL stands for
    FETCH = "fetch"  #: an object into a file
    READ = "read"  #: parts of objects into a file
    STORE = "store"  #: a file into an object
    REMOVE = "remove"  #: objects, so that they are there no more
    STOP = "stop"  #: to leave a question


class MoverFault(StrEnum):
    """Why something could not be moved."""

    REFUSED = "refused"
    NOTHING = "nothing"  #: a URL stands for no object
    AWAY = "away"
    DISK = "disk"
    BROKEN = "broken"  #: a library did what nobody knows of


@dataclass(frozen=True, slots=True)
class BucketPart:
    """A part of an object of a store."""

    object: StoredObject
    start: int
    end: int


def line_of(number: int, **said: Any) -> bytes:  # noqa: ANN401 - whatever JSON has
    """A question or an answer as a line."""
    return json.dumps({"n": number, **said}, separators=(",", ":")).encode() + b"\n"


def access_said(access: StoreAccess) -> dict[str, Any]:
    """The way to a store as a question has it."""
    return asdict(access)


def access_heard(said: Mapping[str, Any]) -> StoreAccess:
    """The way to a store that a question has."""
    return StoreAccess(**said)


def object_said(each: StoredObject) -> list[Any]:
    """An object as questions and answers have it."""
    return [each.key, each.size, each.version]


def object_heard(said: Any) -> StoredObject:  # noqa: ANN401 - whatever JSON has
    """An object of a question or an answer."""
    key, size, version = said
    return StoredObject(key=key, size=size, version=version)


def part_said(each: BucketPart) -> list[Any]:
    """A part of an object as questions have it."""
    return [*object_said(each.object), each.start, each.end]


def part_heard(said: Any) -> BucketPart:  # noqa: ANN401 - whatever JSON has
    """A part of an object of a question."""
    *about, start, end = said
    return BucketPart(object_heard(about), start, end)
