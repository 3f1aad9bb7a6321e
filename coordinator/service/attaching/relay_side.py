"""The relay as the operations on attachments see it."""

from datetime import datetime
from typing import Protocol

from muster.domain.ids import NodeId
from muster.trust.tickets import TicketSide


class RelaySide(Protocol):
    """The coordinator's connection to the relay."""

    @property
    def address(self) -> str | None:
        """HOST:PORT of the relay, with an empty host for that of the coordinator; None: there is no relay now."""
        ...

    def ticket(self, attachment: str, side: TicketSide, *, account: str, node: NodeId, now: datetime) -> str:
        """What a side shows to the relay."""
        ...

    def opened(self, attachment: str) -> None:
        """Have an attachment count as open."""
        ...

    def close(self, attachment: str, why: str) -> None:
        """End both streams of an attachment."""
        ...
