"""Why something happened: which call, which message of an agent, or which deadline; for the journal and for people."""

from typing import NamedTuple


class EventCause(NamedTuple):
    """What made the core act. A NamedTuple, because every event and every transition carries one."""

    what: str
    """Names one call, message or deadline, such as `call k3f-17 jobs.stop` or `gpu-3 stream 5 message 12`."""
    who: str = ""
    """The account that made the call."""

    def __str__(self) -> str:
        return f"{self.what} by {self.who}" if self.who else self.what


UNKNOWN_CAUSE = EventCause("")
"""The cause of an event that nobody named one for."""


def message_cause(node: str, stream: int, message: int) -> EventCause:
    """The cause of what an agent told: its stream, and the place of the message there."""
    return EventCause(f"{node} stream {stream} message {message}")
