"""Values as bytes, for messages that many agents are sent alike: made once, and kept for a while."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from muster.wire.checks import WireError

Value = TypeVar("Value")

KEPT_BYTES = 16 * 1024 * 1024
"""Bytes kept of each kind; what one turn of the coordinator sends to all nodes of a few gangs."""
KEPT_VALUES = 100
"""Values kept of each kind: each of them stays in memory as long."""


class EncodedOnce(Generic[Value]):
    """Bytes of values that do not change; those asked for last are kept."""

    def __init__(self, write: Callable[[Value], bytes], kept: int = KEPT_BYTES) -> None:
        """`write` makes the bytes, or raises WireError for a value that must not travel; `kept` counts bytes."""
        self._write = write
        self._most = kept
        self._size = 0
        self._made: OrderedDict[int, tuple[Value, bytes | WireError]] = OrderedDict()
        """Encoded values by identity, which the value kept beside the bytes holds."""

    def of(self, value: Value) -> bytes:
        """The bytes of a value; raises WireError for one that must not travel."""
        made = self._made.get(id(value))
        if made is None:
            made = self._made[id(value)] = (value, self._make(value))
            self._size += _size(made[1])
            while len(self._made) > 1 and (self._size > self._most or len(self._made) > KEPT_VALUES):
                self._size -= _size(self._made.popitem(last=False)[1][1])
        else:
            self._made.move_to_end(id(value))
        if isinstance(made[1], WireError):
            raise made[1]
        return made[1]

    def _make(self, value: Value) -> bytes | WireError:
        try:
            return self._write(value)
        except WireError as error:
            return error


def _size(made: bytes | WireError) -> int:
    return len(made) if isinstance(made, bytes) else 0
