"""What an agent and a supervisor say to each other: the order, and where the bell is."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from agent.logs.mask import Mask, MaskedSplitter
from muster.domain.gangs.log import LineSplitter, Stream

OTHER_USERS = "other-users"
"""Tells the launcher that programs will run as other users than the agent."""

GO = b"go\n"
"""What lets the program start."""

GROUPS_LINE = b"groups "
"""Begins the line that names the cgroups of a program before there is an order for it."""

Groups = tuple[tuple[str, str], ...]
"""Cgroups of a program, each with the one to which its supervisor returns."""


def paths_of(groups: Groups) -> tuple[str, ...]:
    """Only the program's cgroups."""
    return tuple(group for group, _ in groups)


def groups_line(groups: Groups) -> bytes:
    """The cgroups of a program, as they go over the connection."""
    return GROUPS_LINE + json.dumps(groups).encode() + b"\n"


def groups_in(line: bytes) -> Groups:
    """The cgroups that such a line names."""
    return tuple((group, home) for group, home in json.loads(line.removeprefix(GROUPS_LINE)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramOrder:
    """All that is needed to run a program. Paths are absolute."""

    directory: str
    log: str
    log_limit: int
    command: tuple[str, ...]
    path: str
    """Path of the executable."""
    env: Mapping[str, str] = field(repr=False)
    workdir: str
    user: tuple[int, int] | None = None
    """Number of the user and of its group; None: as the supervisor."""
    own_user: bool = False
    """Whether nothing else runs as that user."""
    groups: Groups = ()
    """The cgroups in which it starts, each with the one to which its supervisor returns."""
    parent: tuple[str, ...] = ()
    """The program in front of user code, which people talk to through it, and its arguments; empty: there is none."""
    companion: tuple[str, ...] = ()
    """The command that stays beside the program and starts others for the agent; empty: there is none."""
    ticket: str = field(default="", repr=False)
    """What companion and parent show at the door."""
    masked: tuple[str, ...] = field(default=(), repr=False)
    """What must not get into the log, as `Mask.patterns`, each byte as a character. It is nowhere but in memory."""

    @property
    def alone_as(self) -> int | None:
        """The number of the user as whom nothing else runs; None: there is none."""
        return self.user[0] if self.user is not None and self.own_user else None

    def splitter(self, stream: Stream) -> LineSplitter | MaskedSplitter:
        """A splitter of lines for what the program prints."""
        if not self.masked:
            return LineSplitter(stream)
        return MaskedSplitter(stream, Mask(pattern.encode("latin-1") for pattern in self.masked))

    def line(self) -> bytes:
        """The order as it goes over the connection."""
        return json.dumps({each.name: getattr(self, each.name) for each in fields(self)}).encode() + b"\n"
