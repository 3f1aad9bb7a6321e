"""What somebody types at a terminal to leave an attachment whose other side hangs: `~.` at the beginning of a line."""

from dataclasses import dataclass
from enum import Enum


def escapes_explained(*, goes_on: bool) -> tuple[str, ...]:
    """Lines that `~?` shows, by whether what runs there goes on without anybody who is attached."""
    left = "goes on" if goes_on else "hears that you have hung up"
    return (f"~.  leave; what runs there {left}", "~?  this list", "~~  one ~ for the program")


class Escape(Enum):
    """What was asked for."""

    LEAVE = "."
    EXPLAIN = "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """What becomes of what was typed."""

    passed: bytes
    """What the program gets of it."""
    escapes: tuple[Escape, ...] = ()


class EscapeReader:
    """Finds escapes in what is typed, piece by piece; nothing is kept back but a `~` that begins a line."""

    def __init__(self) -> None:
        self._at_beginning = True
        self._tilde = False

    def read(self, data: bytes) -> Typed:
        """The next piece: what the program gets of it, and what was asked for, as far as that comes before LEAVE."""
        passed = bytearray()
        escapes: list[Escape] = []
        for code in data:
            key = bytes((code,))
            if self._tilde:
                self._tilde = False
                if key in {b".", b"?"}:
                    escapes.append(Escape(key.decode()))
                    self._at_beginning = True
                    if escapes[-1] is Escape.LEAVE:
                        break
                    continue
                if key != b"~":
                    passed += b"~"
                passed += key
                self._at_beginning = key in {b"\r", b"\n"}
            elif self._at_beginning and key == b"~":
                self._tilde = True
            else:
                passed += key
                self._at_beginning = key in {b"\r", b"\n"}
        return Typed(passed=bytes(passed), escapes=tuple(escapes))
