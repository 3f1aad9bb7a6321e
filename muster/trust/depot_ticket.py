"""Tickets for the depot, which knows no users: what one may put there or get from there, and until when."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from muster.trust.tickets import TicketError, signed_ticket, ticket_payload

DEPOT_TICKET_LIFE = timedelta(hours=24)
"""How long a ticket for the depot counts."""

DEPOT_TICKET_METADATA = "muster-ticket"
"""The metadata with which a caller shows its ticket."""

_LONGEST_NAME = 255
_LATEST = 253_402_300_799


class DepotOperation(StrEnum):
    """What a ticket opens."""

    PUT = "put"  #: send objects, and ask which are not there
    GET = "get"  #: fetch a tree and what it lists


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotTicket:
    """What a ticket for the depot says."""

    operation: DepotOperation
    ticket: str
    """The id that lines of the journal have."""
    project: str
    account: str
    """The account or node that it was given to."""
    tree: str = ""
    """SHA-256 of the tree that may be fetched."""
    room: int = 0
    """Bytes of objects that may be sent with it, in all."""
    limit: int = 0
    """Bytes that the project may keep in the depot, with what is sent with it."""
    not_after: datetime
    """Until then it counts; whole seconds."""


def make_depot_ticket(key: bytes, ticket: DepotTicket) -> str:
    """The text of a ticket; raises TicketError where its names are too long."""
    said = {
        "operation": ticket.operation.value,
        "ticket": ticket.ticket,
        "project": ticket.project,
        "account": ticket.account,
        "tree": ticket.tree,
        "room": ticket.room,
        "limit": ticket.limit,
        "not_after": int(ticket.not_after.timestamp()),
    }
    return signed_ticket(key, json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode())


def read_depot_ticket(key: bytes, text: str, now: datetime) -> DepotTicket:
    """What a ticket says whose time is not over; raises TicketError."""
    payload = ticket_payload(key, text)
    try:
        said = json.loads(payload)
        ticket = DepotTicket(
            operation=DepotOperation(said["operation"]),
            ticket=_text(said["ticket"]),
            project=_text(said["project"]),
            account=_text(said["account"]),
            tree=_text(said["tree"]),
            room=_number(said["room"], 1 << 62),
            limit=_number(said["limit"], 1 << 62),
            not_after=datetime.fromtimestamp(_number(said["not_after"], _LATEST), UTC),
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        raise TicketError("the ticket is one of another version of Muster: ask for a new one") from None
    if now >= ticket.not_after:
        raise TicketError("the time of the ticket is over: ask for a new one")
    return ticket


def _text(value: object) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_NAME:
        raise ValueError("no text")
    return value


def _number(value: object, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError("no number")
    return value
