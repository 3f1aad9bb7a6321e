"""Lines between the coordinator and a program beside it, and what stands in their fields.

What one side does not know yet it passes over, as versions may differ by one.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from muster.trust.identity import Identity
from muster.trust.tickets import TICKET_SECRET_BYTES

LONGEST_COMPANION_LINE = 64 * 1024
"""Bytes of one line; the longest has a certificate and its key."""

_MOST_COUNTED = 1 << 63

Heard = TypeVar("Heard")
"""What a side hears."""
Told = TypeVar("Told")
"""What a side says."""


class CompanionLineError(ValueError):
    """A line says what cannot be; names the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanionTalk(Generic[Heard, Told]):
    """How one side of a line speaks."""

    program: str
    """The program beside the coordinator: `relay`, `depot`."""
    line_of: Callable[[Told], bytes]
    read: Callable[[bytes], Heard | None]
    """What a line says; None: something that is not known here. Raises CompanionLineError."""
    version_in: Callable[[Heard], str] = lambda _: ""
    """The version of the other side that its first message tells; empty: it does not."""

    @property
    def socket(self) -> str:
        """Name of the socket in the coordinator's state directory."""
        return f"{self.program}.sock"


class LineFields:
    """One line, whose fields are read one by one; raises CompanionLineError."""

    def __init__(self, said: Mapping[str, object]) -> None:
        self._said = said

    def __contains__(self, name: str) -> bool:
        return name in self._said

    def text(self, name: str) -> str:
        """A text."""
        value = self._said.get(name)
        if not isinstance(value, str):
            raise CompanionLineError(f"{name} is no text")
        return value

    def truth(self, name: str) -> bool:
        """True or false."""
        value = self._said.get(name)
        if not isinstance(value, bool):
            raise CompanionLineError(f"{name} is neither true nor false")
        return value

    def count(self, name: str) -> int:
        """A whole number from 0 on."""
        value = self._said.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _MOST_COUNTED:
            raise CompanionLineError(f"{name} is no count")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        value = self._said.get(name)
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise CompanionLineError(f"{name} is no list of texts")
        return tuple(value)

    def key(self, name: str) -> bytes:
        """A key of tickets."""
        try:
            key = bytes.fromhex(self.text(name))
        except ValueError:
            raise CompanionLineError(f"{name} is not written in hexadecimal digits") from None
        if len(key) != TICKET_SECRET_BYTES:
            raise CompanionLineError(f"{name} has {len(key)} bytes; it must have {TICKET_SECRET_BYTES}")
        return key

    def identity(self) -> Identity:
        """The certificate and its key, as `identity_fields` says them."""
        return Identity(certificate=self._pem("certificate"), key=self._pem("private_key"))

    def _pem(self, name: str) -> bytes:
        text = self.text(name)
        if not text.isascii():
            raise CompanionLineError(f"{name} is no PEM")
        return text.encode()


def identity_fields(identity: Identity | None) -> Mapping[str, object]:
    """The fields that say a certificate and its key; none where there is none."""
    if identity is None:
        return {}
    return {"certificate": identity.certificate.decode(), "private_key": identity.key.decode()}


def written_line(said: Mapping[str, object]) -> bytes:
    """The line with these fields."""
    return json.dumps(said, separators=(",", ":")).encode() + b"\n"


def read_line(line: bytes, known: Mapping[str, Callable[[LineFields], Heard]]) -> Heard | None:
    """What a line says, read by what stands for its `say`; None: something that is not known here.

    Raises CompanionLineError.
    """
    try:
        said: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise CompanionLineError("the line is no JSON") from None
    if not isinstance(said, dict):
        raise CompanionLineError("the line is no object")
    fields = LineFields(said)
    read = known.get(fields.text("say"))
    return None if read is None else read(fields)
