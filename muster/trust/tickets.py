"""Tickets: what the coordinator gives to others so that a program beside it lets them in.

A ticket is `v1.PAYLOAD.MAC`, both parts in base64url without padding. The payload is compact JSON; the MAC is its
HMAC-SHA256 with a key that is derived from one secret, another one for each purpose.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from muster.domain.errors import MusterError
from muster.domain.ids import NodeId

LONGEST_TICKET_TEXT = 2048
"""Characters of a ticket."""

TICKET_SECRET_BYTES = 32
"""Bytes of the secret from which keys are derived, and of each of these keys."""

TICKET_LIFE = timedelta(seconds=60)
"""How long a ticket opens the first stream of its side."""

_VERSION = "v1"
_LONGEST_FIELD = 255
_LATEST = 253_402_300_799
"""The last second that a date can have."""


class TicketPurpose(StrEnum):
    """What tickets are for; those of one purpose are worth nothing for another."""

    ATTACHMENT = "attachment"
    DEPOT = "depot"


class TicketSide(StrEnum):
    """The side of an attachment that a ticket opens."""

    CLIENT = "client"
    AGENT = "agent"

    @property
    def other(self) -> "TicketSide":
        """The side that it is joined to."""
        return TicketSide.AGENT if self is TicketSide.CLIENT else TicketSide.CLIENT


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentTicket:
    """What a ticket for the relay says."""

    attachment: str
    side: TicketSide
    node: NodeId
    """Where the execution runs."""
    account: str
    """The account that attaches."""
    not_after: datetime
    """Until then it opens the first stream of its side; whole seconds count."""


class TicketError(MusterError):
    """A text is no ticket of this fleet; does not repeat the text, which may be half a ticket."""


def ticket_key(secret: bytes, purpose: TicketPurpose) -> bytes:
    """The key that tickets of a purpose are signed with."""
    return _mac(secret, b"key of muster tickets\0" + purpose.encode())


def make_ticket(key: bytes, ticket: AttachmentTicket) -> str:
    """The text of a ticket; raises TicketError where its names are too long."""
    said = {
        "attachment": ticket.attachment,
        "side": ticket.side,
        "node": ticket.node,
        "account": ticket.account,
        "not_after": int(ticket.not_after.timestamp()),
    }
    return signed_ticket(key, json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode())


def read_ticket(key: bytes, text: str) -> AttachmentTicket:
    """What a ticket says, whether or not its time is over; raises TicketError."""
    payload = ticket_payload(key, text)
    try:
        said = json.loads(payload)
        ticket = AttachmentTicket(
            attachment=_name(said["attachment"]),
            side=TicketSide(said["side"]),
            node=NodeId(_name(said["node"])),
            account=_name(said["account"]),
            not_after=datetime.fromtimestamp(_second(said["not_after"]), UTC),
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        raise TicketError("the ticket is one of another version of Muster: ask for a new one") from None
    return ticket


def signed_ticket(key: bytes, payload: bytes) -> str:
    """The text of a ticket with this payload; raises TicketError for one that nobody would take."""
    body = f"{_VERSION}.{_encoded(payload)}"
    text = f"{body}.{_encoded(_mac(key, body.encode()))}"
    if len(text) > LONGEST_TICKET_TEXT:
        raise TicketError(f"a ticket would have {len(text)} characters; at most {LONGEST_TICKET_TEXT} are taken")
    return text


def ticket_payload(key: bytes, text: str) -> bytes:
    """The payload of a ticket that was signed with this key; raises TicketError."""
    if not 0 < len(text) <= LONGEST_TICKET_TEXT or not text.isascii():
        raise TicketError(f"that is no ticket: one has at most {LONGEST_TICKET_TEXT} characters, all of them ASCII")
    body, _, mac = text.rpartition(".")
    version, _, payload = body.partition(".")
    if version != _VERSION or "." in payload:
        raise TicketError(f"that is no ticket: one is written as {_VERSION}.PAYLOAD.MAC")
    if not _same(mac, _encoded(_mac(key, body.encode()))):
        raise TicketError("the ticket is not signed by this fleet, or was changed: ask for a new one")
    return _decoded(payload)


def _name(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_FIELD:
        raise ValueError("no name")
    return value


def _second(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LATEST:
        raise ValueError("no time")
    return value


def _mac(key: bytes, content: bytes) -> bytes:
    from hmac import digest  # noqa: PLC0415 - OpenSSL, which agents do without

    return digest(key, content, "sha256")


def _same(shown: str, genuine: str) -> bool:
    """Whether two MACs are the same; takes as long for every wrong one."""
    from hmac import compare_digest  # noqa: PLC0415 - OpenSSL, which agents do without

    return compare_digest(shown.encode(), genuine.encode())


def _encoded(content: bytes) -> str:
    from base64 import urlsafe_b64encode  # noqa: PLC0415 - agents hand tickets on and never read one

    return urlsafe_b64encode(content).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    from base64 import urlsafe_b64decode  # noqa: PLC0415 - agents hand tickets on and never read one

    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise TicketError("the payload of the ticket is no base64url") from None
