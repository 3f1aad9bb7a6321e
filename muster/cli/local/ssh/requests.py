"""What an SSH client asks for as what is asked of an execution, and how its end is told: pure functions."""

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from muster.domain.attachments.frame import AttachmentEnded, AttachmentTrouble
from muster.domain.attachments.request import (
    HERE,
    LARGEST_TERMINAL,
    LONGEST_ADDRESS,
    CommandRequest,
    ConnectionRequest,
    TerminalSize,
)
from muster.domain.jobs.rules import job_values

MOST_SENT_VARIABLES = 64
"""Variables that one SSH session may send."""

LONGEST_SENT_VARIABLES = 32 * 1024
"""Bytes of them together."""

NOT_CARRIED_CODE = 255
"""Exit code of `ssh` itself, for what did not come to its own end."""

_LONGEST_TERM = 64
_USUAL_SIZE = TerminalSize(rows=24, columns=80)
_HERE_NAMES = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})
"""What clients call the machine at the other end; it need not be in the name files of an image."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedTerminal:
    """The terminal that an SSH client wants for its session."""

    term: str
    """The kind of the terminal, as in the variable TERM."""
    size: TerminalSize


def terminal_size(columns: int, rows: int) -> TerminalSize:
    """A size that a terminal can have; a client that does not know its own says 0."""
    return TerminalSize(
        rows=min(rows, LARGEST_TERMINAL) or _USUAL_SIZE.rows,
        columns=min(columns, LARGEST_TERMINAL) or _USUAL_SIZE.columns,
    )


def command_request(
    line: str | None, terminal: AskedTerminal | None, variables: Mapping[bytes, bytes]
) -> tuple[CommandRequest, Sequence[str]]:
    """The command of a session, where no line is the login shell; and the names of variables that it does not get."""
    term = (f"TERM={terminal.term}",) if terminal is not None and _is_term(terminal.term) else ()
    sent, left_out = _taken({_text(name): _text(value) for name, value in variables.items()})
    request = CommandRequest(
        words=() if line is None else (line,),
        line=line is not None,
        env=(*term, *sent),
        terminal=None if terminal is None else terminal.size,
        has_input=True,
    )
    return request, left_out


def connection_request(host: str, port: int) -> ConnectionRequest | None:
    """A connection of `-L` or `-D`; None for an address that there cannot be."""
    if not 1 <= port <= job_values.MAX_PORT or len(host) > LONGEST_ADDRESS:
        return None
    return ConnectionRequest(port=port, host=HERE if host.lower() in _HERE_NAMES else host or HERE)


def signal_number(name: str) -> int | None:
    """The number of a signal that SSH names without SIG; None for one that Linux does not have."""
    found = signal.Signals.__members__.get(f"SIG{name}")
    return None if found is None else int(found)


def exit_code(ended: AttachmentEnded) -> int:
    """The exit code that `ssh` ends with."""
    if ended.trouble in {AttachmentTrouble.NONE, AttachmentTrouble.NOT_STARTED, AttachmentTrouble.ENDED}:
        return ended.code
    return NOT_CARRIED_CODE


def last_words(ended: AttachmentEnded) -> str:
    """The line that people see at the end; empty where there is nothing to say."""
    return f"muster: {ended.text}" if ended.text else ""


def _taken(variables: Mapping[str, str]) -> tuple[Sequence[str], Sequence[str]]:
    taken: list[str] = []
    left_out: list[str] = []
    room = LONGEST_SENT_VARIABLES
    for name, value in variables.items():
        size = len(f"{name}={value}".encode(errors="surrogateescape"))
        if job_values.env_name(name) or "\0" in value or size > room or len(taken) == MOST_SENT_VARIABLES:
            left_out.append(name)
        else:
            taken.append(f"{name}={value}")
            room -= size
    return taken, left_out


def _is_term(term: str) -> bool:
    return bool(term) and len(term) <= _LONGEST_TERM and term.isascii() and term.isprintable() and " " not in term


def _text(value: bytes) -> str:
    return value.decode(errors="surrogateescape")
