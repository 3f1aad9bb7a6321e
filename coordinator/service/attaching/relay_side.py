"""The relay as the operations on attachments see it."""

from datetime import datetime
from typing import Protocol

from muster.domain.ids import NodeId
from muster.trust.tickets import TicketSide


class RelayTraffic(Protocol):
    """What the relay has carried of an attachment."""

    @property
    def bytes_in(self) -> int:
        """Bytes to the execution."""
        ...

    @property
    def bytes_out(self) -> int:
        """Bytes from the execution."""
        ...

    @property
    def client(self) -> bool:
        """Whether the stream of the client is there."""
        ...

    @property
    def agent(self) -> bool:
        """Whether the stream of the agent is there."""
        ...


class RelaySide(Protocol):
    """The coordinator's connection to the relay."""

    @property
    def address(self) -> str | None:
        """HOST:PORT of the relay, with an empty host for that of the coordinator; None: there is no relay now."""
        ...

    def ticket(self, attachment: str, side: TicketSide, *, account: str, node: NodeId, now: datetime) -> str:
        """What a side shows to the relay."""
        ...

    def traffic(self, attachment: str) -> "RelayTraffic":
        """What was carried of an attachment, and which sides are there."""
        ...

    def opened(self, attachment: str) -> None:
        """Have an attachment count as open."""
        ...

    def came(self, node: NodeId) -> None:
        """A node has come, and all that it serves counts as open: what else was open there is lost."""
        ...

    def close(self, attachment: str, why: str, *, lost: bool = False) -> None:
        """End both streams of an attachment; `lost`: nobody has closed it."""
        ...
