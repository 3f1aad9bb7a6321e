"""What coordinator and depot say to each other over the coordinator's socket: one JSON object a line.

The depot begins with DepotHello; the coordinator answers with DepotWelcome.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from muster.daemon.companions.lines import CompanionTalk, LineFields, identity_fields, read_line, written_line
from muster.trust.identity import Identity


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotHello:
    """The first line of the depot."""

    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotServes:
    """The depot listens."""

    listen: str
    """HOST:PORT with the port that was bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotWelcome:
    """The first line of the coordinator."""

    key: bytes = field(repr=False)
    """The key of tickets for the depot."""
    listen: str
    """Where the depot listens unless its own settings say so."""
    before: str
    """Where a depot listened last; empty: the coordinator knows of none."""
    identity: Identity | None
    """The certificate to serve with; None: plain text, on a loopback address alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotIdentity:
    """Another certificate to serve with from now on."""

    identity: Identity


DepotMessage = DepotHello | DepotServes
DepotDeskMessage = DepotWelcome | DepotIdentity


def depot_line(message: DepotMessage | DepotDeskMessage) -> bytes:
    """The line that says it."""
    return written_line(_fields_of(message))


def depot_message(line: bytes) -> DepotMessage | None:
    """What the depot says; None: something that is not known here. Raises CompanionLineError."""
    return read_line(line, _FROM_DEPOT)


def depot_desk_message(line: bytes) -> DepotDeskMessage | None:
    """What the coordinator says; None: something that is not known here. Raises CompanionLineError."""
    return read_line(line, _FROM_DESK)


def _fields_of(message: DepotMessage | DepotDeskMessage) -> Mapping[str, object]:
    match message:
        case DepotHello(version=version):
            return {"say": "hello", "version": version}
        case DepotServes(listen=listen):
            return {"say": "serves", "listen": listen}
        case DepotWelcome():
            return {
                "say": "welcome",
                "key": message.key.hex(),
                "listen": message.listen,
                "before": message.before,
                **identity_fields(message.identity),
            }
        case DepotIdentity(identity=identity):
            return {"say": "identity", **identity_fields(identity)}


_FROM_DEPOT: Mapping[str, Callable[[LineFields], DepotMessage]] = {
    "hello": lambda said: DepotHello(version=said.text("version")),
    "serves": lambda said: DepotServes(listen=said.text("listen")),
}

_FROM_DESK: Mapping[str, Callable[[LineFields], DepotDeskMessage]] = {
    "welcome": lambda said: DepotWelcome(
        key=said.key("key"),
        listen=said.text("listen"),
        before=said.text("before"),
        identity=said.identity() if "certificate" in said else None,
    ),
    "identity": lambda said: DepotIdentity(identity=said.identity()),
}

DEPOT_TALK: CompanionTalk[DepotDeskMessage, DepotMessage] = CompanionTalk(
    program="depot", line_of=depot_line, read=depot_desk_message
)
"""How the depot speaks."""
DEPOT_DESK_TALK: CompanionTalk[DepotMessage, DepotDeskMessage] = CompanionTalk(
    program="depot",
    line_of=depot_line,
    read=depot_message,
    version_in=lambda first: first.version if isinstance(first, DepotHello) else "",
)
"""How the coordinator speaks to the depot."""
