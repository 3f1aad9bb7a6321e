"""What coordinator and depot say to each other over the coordinator's socket: one JSON object a line.

The depot begins with DepotHello; the coordinator answers with DepotWelcome. A depot that wants to remove what no job
names says DepotNamesWanted. All trees that jobs name are told to it: lines of DepotNames, and DepotNamesEnd at the end.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field

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
class DepotNamesWanted:
    """The depot wants to be told which trees jobs name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotHolds:
    """What the jobs of a project name; said of each project before DepotSwept."""

    project: str
    trees: int
    objects: int
    """Objects that its trees list, each counted once."""
    bytes: int
    """Bytes of these objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotSwept:
    """The depot has looked at all that it holds, and removed what no job names."""

    objects: int
    """Objects that are left."""
    bytes: int
    """Bytes of these."""
    unnamed_objects: int
    """Objects of these that no job names, and that have not been there for long."""
    unnamed_bytes: int
    removed_objects: int
    removed_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotKept:
    """The answer to DepotKeep."""

    call: int
    missing: tuple[str, ...]
    """Trees that are not here, or not with all that they list."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotNames:
    """Some trees that jobs of a project name."""

    project: str
    trees: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotNamesEnd:
    """All trees that jobs name have been told."""

    count: int
    """How many there were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DepotKeep:
    """Jobs will name these trees: they count as used now, with all that they list."""

    call: int
    """The number that the answer has."""
    trees: tuple[str, ...]


DepotMessage = DepotHello | DepotServes | DepotNamesWanted | DepotHolds | DepotSwept | DepotKept
DepotDeskMessage = DepotWelcome | DepotIdentity | DepotNames | DepotNamesEnd | DepotKeep

TREES_IN_LINE = 500
"""Trees that one line names."""


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
        case _:
            return {"say": _WORDS[type(message)], **asdict(message)}


_WORDS: Mapping[type, str] = {
    DepotHello: "hello",
    DepotServes: "serves",
    DepotNamesWanted: "asks-names",
    DepotHolds: "holds",
    DepotSwept: "swept",
    DepotKept: "kept",
    DepotNames: "names",
    DepotNamesEnd: "names-end",
    DepotKeep: "keep",
}
"""What a line says whose other fields are those of its message."""

_FROM_DEPOT: Mapping[str, Callable[[LineFields], DepotMessage]] = {
    "hello": lambda said: DepotHello(version=said.text("version")),
    "serves": lambda said: DepotServes(listen=said.text("listen")),
    "asks-names": lambda _: DepotNamesWanted(),
    "holds": lambda said: DepotHolds(
        project=said.text("project"),
        trees=said.count("trees"),
        objects=said.count("objects"),
        bytes=said.count("bytes"),
    ),
    "swept": lambda said: DepotSwept(
        objects=said.count("objects"),
        bytes=said.count("bytes"),
        unnamed_objects=said.count("unnamed_objects"),
        unnamed_bytes=said.count("unnamed_bytes"),
        removed_objects=said.count("removed_objects"),
        removed_bytes=said.count("removed_bytes"),
    ),
    "kept": lambda said: DepotKept(call=said.count("call"), missing=said.texts("missing")),
}

_FROM_DESK: Mapping[str, Callable[[LineFields], DepotDeskMessage]] = {
    "welcome": lambda said: DepotWelcome(
        key=said.key("key"),
        listen=said.text("listen"),
        before=said.text("before"),
        identity=said.identity() if "certificate" in said else None,
    ),
    "identity": lambda said: DepotIdentity(identity=said.identity()),
    "names": lambda said: DepotNames(project=said.text("project"), trees=said.texts("trees")),
    "names-end": lambda said: DepotNamesEnd(count=said.count("count")),
    "keep": lambda said: DepotKeep(call=said.count("call"), trees=said.texts("trees")),
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
