"""The packets of the door, the socket between an execution and its agent; docs/door.md has them byte by byte.

Three kinds of programs come to the door. A *caller* wants a command in another execution of its gang. The *companion*
starts commands in its own, and opens connections there. The *parent* of a main program lends its terminal or its input.
Whoever connects speaks first. One message of the socket is one packet.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum
from ipaddress import IPv4Address, IPv6Address

DOOR_VERSION = 1
"""What a companion or a caller says of itself first: it may be older or newer than its agent."""

LARGEST_PACKET = 128 * 1024
"""Bytes of a packet."""

LARGEST_DATA = 64 * 1024
"""Bytes of input or output in one packet."""

LONGEST_REFUSAL = 4096
"""Bytes of the sentence that tells why."""

LONGEST_TICKET = 128
"""Bytes of what tells a companion from other programs."""

MOST_TEXTS = 0xFFFF
"""Words of a command, and as many variables."""

LONGEST_KEPT_NAME = 64
"""Bytes of the name of a kept shell."""

LARGEST_NUMBER = 0xFFFF_FFFF

LAST_SIGNAL = 64


class DoorError(ValueError):
    """A packet that cannot be understood, or cannot be sent."""


class Speaker(Enum):
    """Each side of each kind of line; it decides what a packet may be."""

    CALLER = "caller"
    COMPANION = "companion"
    AGENT_TO_CALLER = "agent to caller"
    AGENT_TO_COMPANION = "agent to companion"
    PARENT = "parent of a main program"
    AGENT_TO_PARENT = "agent to the parent of a main program"


class Targets(IntEnum):
    """How a caller says in which executions its command is to run."""

    ONE = 1
    """One rank, name or address."""
    RANKS = 2
    """Several ranks, as in `0,2-3`."""
    ALL = 3


class FaultyPart(IntEnum):
    """Each part of a command that can be at fault where it does not start."""

    PROGRAM = 1
    DIRECTORY = 2
    """The directory in which it is to start."""
    STREAMS = 3
    """The pipes of a command, or its terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangCommandAsked:
    """The first packet of a caller: what to run, and where."""

    targets: Targets
    target: str
    words: tuple[str, ...]
    """Program and arguments; one word alone is a line for `/bin/sh`."""
    env: tuple[str, ...] = ()
    """Variables beside those of the execution, as NAME=VALUE."""
    daemon: bool = False
    """Whether the command goes on when the line is lost."""
    has_input: bool = False
    step: bool = False
    """Whether what runs in several executions is one program: one that fails ends the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangInput:
    """A piece of what the command reads."""

    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GangInputEnd:
    """The end of what the command reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangSignal:
    """A signal for the command and all that it started."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GangBegun:
    """The command runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangOutput:
    """A piece of what the command prints."""

    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GangErrorOutput:
    """A piece of what the command prints as errors."""

    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GangExit:
    """How the command ended; the last packet."""

    code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GangRefused:
    """Why the command was not started, as a sentence; the last packet."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StayAsked:
    """The first packet of a companion."""

    ticket: str
    """What its agent gave it at its start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandStarted:
    """A command runs; its pipes or its terminal come with the packet."""

    number: int
    pid: int
    """The number that the companion knows it by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandExited:
    """How a command ended: its exit code, or 128 and the signal."""

    number: int
    code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFailed:
    """A command could not be started, with the kernel's number for the reason."""

    number: int
    errno: int
    part: FaultyPart = FaultyPart.PROGRAM


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandKept:
    """A kept shell of an agent before goes on; its terminal comes with the packet."""

    number: int
    pid: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandWanted:
    """A command that the companion is to start."""

    number: int
    words: tuple[str, ...]
    """Program and arguments. Of a shell a line that it runs, or nothing: it is a login shell."""
    env: tuple[str, ...] = ()
    """Variables beside the companion's own, as NAME=VALUE."""
    workdir: str = ""
    """Empty: the companion's own."""
    terminal: bool = False
    has_input: bool = False
    daemon: bool = False
    """Whether it goes on when the agent goes away."""
    shell: bool = False
    """Whether the shell of the user runs, whatever that is."""
    kept_name: str = ""
    """Not empty: its terminal is kept for the next agent, and goes by this name."""
    rows: int = 24
    columns: int = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandSignal:
    """A signal for a command and the processes of its group."""

    number: int
    signal: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesWanted:
    """A server for the files of the execution; what starts is told as of a command, with a socket."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionWanted:
    """A connection that the companion is to open in the network of its execution."""

    number: int
    address: IPv4Address | IPv6Address
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionBegun:
    """A connection is on its way; its socket comes with the packet."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionFailed:
    """A connection could not be begun, with the kernel's number for the reason."""

    number: int
    errno: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MainProgramShown:
    """The first packet of the parent of a main program, with what that is reached by.

    With a terminal come that and a pipe of what it shows; else the pipe that the program reads, unless that has ended.
    """

    ticket: str
    """What its agent gave it at its start."""
    terminal: bool
    has_input: bool
    """Whether a pipe is there that the program reads; not beside a terminal."""
    pid: int
    """The number that the parent knows it by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MainProgramExited:
    """How the main program ended: its exit code, or 128 and the signal."""

    code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MainInputEnd:
    """The main program is to find the end of its input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MainSignal:
    """A signal for the main program and the processes of its group."""

    number: int


CallerPacket = GangCommandAsked | GangInput | GangInputEnd | GangSignal
"""What a caller may send."""

CallerAnswer = GangBegun | GangOutput | GangErrorOutput | GangExit | GangRefused
"""What a caller may be sent."""

CompanionPacket = (
    StayAsked | CommandStarted | CommandExited | CommandFailed | CommandKept | ConnectionBegun | ConnectionFailed
)
"""What a companion may send."""

CompanionOrder = CommandWanted | CommandSignal | FilesWanted | ConnectionWanted
"""What a companion may be sent."""

ParentPacket = MainProgramShown | MainProgramExited
"""What the parent of a main program may send."""

ParentOrder = MainInputEnd | MainSignal
"""What the parent of a main program may be sent."""

Packet = CallerPacket | CallerAnswer | CompanionPacket | CompanionOrder | ParentPacket | ParentOrder
