"""The ticket of an execution: what its companion shows at the door, also to the next agent."""

import os
from contextlib import suppress

from agent.executions.layout import ATTACH_TICKET, TICKET, ExecutionDirectory
from agent.executions.whole_file import write_whole

_PRIVATE = 0o600
_BYTES = 16


def made_ticket(directory: ExecutionDirectory, *, gang_commands: bool) -> str:
    """A new one, kept where the next agent finds it; `gang_commands`: whether user code may come to the door, too.

    Raises OSError.
    """
    ticket = os.urandom(_BYTES).hex()
    write_whole(directory.path / (TICKET if gang_commands else ATTACH_TICKET), ticket.encode(), _PRIVATE)
    return ticket


def kept_ticket(directory: ExecutionDirectory, *, gang_commands: bool) -> str:
    """The one that was made; empty: there is none, and so no door of that kind."""
    with suppress(OSError, ValueError):
        return (directory.path / (TICKET if gang_commands else ATTACH_TICKET)).read_text(encoding="ascii")
    return ""
