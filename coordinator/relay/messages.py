"""What coordinator and relay say to each other over the coordinator's socket: one JSON object a line.

The relay begins with RelayHello; the coordinator answers with RelayWelcome, the attachments that are open, and
RelayListed. What one side does not know yet it passes over, as versions may differ by one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from muster.daemon.companions.lines import CompanionTalk, LineFields, identity_fields, read_line, written_line
from muster.domain.ids import NodeId
from muster.trust.identity import Identity

LONGEST_REASON = 1000
"""Characters that a side is told of why its attachment was closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayHello:
    """The first line of the relay."""

    version: str
    run: str
    """Made anew at each start of the relay: its counts of bytes begin with 0 then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayServes:
    """The relay listens."""

    listen: str
    """HOST:PORT with the port that was bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentCarried:
    """How an attachment of the relay is, after anything about it has changed."""

    attachment: str
    account: str
    node: NodeId
    client: bool
    """Whether the stream of the client is there."""
    agent: bool
    """Whether the stream of the agent is there."""
    bytes_in: int
    """Bytes from client to agent since this relay knows the attachment."""
    bytes_out: int
    """Bytes from agent to client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentForgotten:
    """The relay knows nothing of an attachment any more, as no side was there for long."""

    attachment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayWelcome:
    """The first line of the coordinator."""

    fleet: str
    """The fleet id."""
    key: bytes = field(repr=False)
    """The key of tickets for attachments."""
    listen: str
    """Where the relay listens unless its own settings say so."""
    before: str
    """Where a relay listened last; empty: the coordinator knows of none."""
    identity: Identity | None
    """The certificate to serve with; None: plain text, on a loopback address alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayIdentity:
    """Another certificate to serve with from now on."""

    identity: Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentOpen:
    """An attachment is open; its tickets count until it is closed."""

    attachment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RelayListed:
    """All open attachments were listed since the welcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentClosed:
    """An attachment is closed: its streams end, and its tickets are worth nothing any more."""

    attachment: str
    why: str
    """A sentence for people."""
    lost: bool = False
    """Whether nobody has closed it: it was lost."""


RelayMessage = RelayHello | RelayServes | AttachmentCarried | AttachmentForgotten
DeskMessage = RelayWelcome | RelayIdentity | AttachmentOpen | RelayListed | AttachmentClosed


def line_of(message: RelayMessage | DeskMessage) -> bytes:
    """The line that says it."""
    return written_line(_said(message))


def relay_message(line: bytes) -> RelayMessage | None:
    """What the relay says; None: something that is not known here. Raises CompanionLineError."""
    return read_line(line, _FROM_RELAY)


def desk_message(line: bytes) -> DeskMessage | None:
    """What the coordinator says; None: something that is not known here. Raises CompanionLineError."""
    return read_line(line, _FROM_DESK)


def _said(message: RelayMessage | DeskMessage) -> Mapping[str, object]:
    return _said_by_relay(message) if isinstance(message, RelayMessage) else _said_by_desk(message)


def _said_by_relay(message: RelayMessage) -> Mapping[str, object]:
    match message:
        case RelayHello(version=version, run=run):
            return {"say": "hello", "version": version, "run": run}
        case RelayServes(listen=listen):
            return {"say": "serves", "listen": listen}
        case AttachmentCarried():
            return {
                "say": "carried",
                "attachment": message.attachment,
                "account": message.account,
                "node": message.node,
                "client": message.client,
                "agent": message.agent,
                "bytes_in": message.bytes_in,
                "bytes_out": message.bytes_out,
            }
        case AttachmentForgotten(attachment=attachment):
            return {"say": "forgotten", "attachment": attachment}


def _said_by_desk(message: DeskMessage) -> Mapping[str, object]:
    match message:
        case RelayWelcome():
            return {
                "say": "welcome",
                "fleet": message.fleet,
                "key": message.key.hex(),
                "listen": message.listen,
                "before": message.before,
                **identity_fields(message.identity),
            }
        case RelayIdentity(identity=identity):
            return {"say": "identity", **identity_fields(identity)}
        case AttachmentOpen(attachment=attachment):
            return {"say": "open", "attachment": attachment}
        case RelayListed():
            return {"say": "listed"}
        case AttachmentClosed(attachment=attachment, why=why, lost=lost):
            return {"say": "closed", "attachment": attachment, "why": why[:LONGEST_REASON], "lost": lost}


_FROM_RELAY: Mapping[str, Callable[[LineFields], RelayMessage]] = {
    "hello": lambda said: RelayHello(version=said.text("version"), run=said.text("run")),
    "serves": lambda said: RelayServes(listen=said.text("listen")),
    "carried": lambda said: AttachmentCarried(
        attachment=said.text("attachment"),
        account=said.text("account"),
        node=NodeId(said.text("node")),
        client=said.truth("client"),
        agent=said.truth("agent"),
        bytes_in=said.count("bytes_in"),
        bytes_out=said.count("bytes_out"),
    ),
    "forgotten": lambda said: AttachmentForgotten(attachment=said.text("attachment")),
}

_FROM_DESK: Mapping[str, Callable[[LineFields], DeskMessage]] = {
    "welcome": lambda said: RelayWelcome(
        fleet=said.text("fleet"),
        key=said.key("key"),
        listen=said.text("listen"),
        before=said.text("before"),
        identity=said.identity() if "certificate" in said else None,
    ),
    "identity": lambda said: RelayIdentity(identity=said.identity()),
    "open": lambda said: AttachmentOpen(attachment=said.text("attachment")),
    "listed": lambda _: RelayListed(),
    "closed": lambda said: AttachmentClosed(
        attachment=said.text("attachment"),
        why=said.text("why"),
        lost="lost" in said and said.truth("lost"),
    ),
}

RELAY_TALK: CompanionTalk[DeskMessage, RelayMessage] = CompanionTalk(
    program="relay", line_of=line_of, read=desk_message
)
"""How the relay speaks."""
RELAY_DESK_TALK: CompanionTalk[RelayMessage, DeskMessage] = CompanionTalk(
    program="relay",
    line_of=line_of,
    read=relay_message,
    version_in=lambda first: first.version if isinstance(first, RelayHello) else "",
)
"""How the coordinator speaks to the relay."""
