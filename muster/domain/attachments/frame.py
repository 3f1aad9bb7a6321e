"""Frames of streams between a program and a running execution: what goes over them, as values."""

from dataclasses import dataclass
from enum import StrEnum

from muster.domain.attachments.request import TerminalSize
from muster.domain.ids import AttemptId, JobId, NodeId

LARGEST_FRAME_DATA = 64 * 1024
"""Bytes of input or output in one frame."""

LARGEST_CHANNEL_DATA = 256 * 1024
"""Bytes of input or output in one frame of a channel, which counts what is not consumed."""

LONGEST_COMMAND = 128 * 1024
"""Bytes of the words and variables of one command."""

COMMAND_NONCE = 16
"""Bytes that are made for each command."""

SIGNATURE_SIZE = 32
"""Bytes of an HMAC-SHA256."""

LAST_FRAME_SIGNAL = 64

MOST_KEPT_SHELLS = 8
"""Kept shells of one execution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangCommand:
    """A command that one execution of an attempt wants to run in another one."""

    job: JobId
    attempt: int
    from_rank: int
    to_rank: int
    node: NodeId
    """The node that asks."""
    nonce: bytes
    words: tuple[str, ...]
    """Program and arguments; one word alone is a line for `/bin/sh`. Bytes that are no UTF-8 are lone surrogates."""
    env: tuple[str, ...] = ()
    """Variables beside those of the execution, as NAME=VALUE."""
    daemon: bool = False
    """Whether it goes on when the stream is lost."""
    has_input: bool = False
    signature: bytes = b""

    @property
    def attempt_id(self) -> AttemptId:
        """Names the attempt."""
        return AttemptId(self.job, self.attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentInput:
    """A piece of what the command reads."""

    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentInputEnd:
    """The end of what the command reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentSignal:
    """A signal for the command and all that it started."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentSize:
    """Another size of the terminal of the command."""

    size: TerminalSize


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentOpened:
    """The command runs, or the connection is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentOutput:
    """A piece of what the command prints."""

    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentErrorOutput:
    """A piece of what the command prints as errors."""

    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentOutputEnd:
    """The end of what a connection brings; more may be sent to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentNotice:
    """A sentence of the coordinator for the people who are attached; what is attached to goes on."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptShell:
    """A shell that goes on when nobody is attached to it."""

    name: str
    pid: int
    """The process of it, as the execution sees that."""
    attached: bool
    """Whether somebody is attached to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentKeptShells:
    """The kept shells of an execution, by name."""

    shells: tuple[KeptShell, ...]


class AttachmentTrouble(StrEnum):
    """Why an attachment ended, where that is not the end of what was attached to."""

    NONE = ""
    NOT_STARTED = "not started"  #: the program is not there, or cannot be run
    NOT_REACHED = "not reached"  #: nothing answers where the connection was to go
    REFUSED = "refused"  #: the execution takes no attachment now
    TAKEN_OVER = "taken over"  #: somebody else has attached to the same shell
    ENDED = "ended"  #: the execution has ended
    CLOSED = "closed"  #: an operator closed it, or the account may attach no more
    LOST = "lost"  #: the agent was restarted, or a side was away for too long


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentEnded:
    """How the command ended; the last frame. From the side that wants the command: it hangs up."""

    code: int
    trouble: AttachmentTrouble = AttachmentTrouble.NONE
    text: str = ""
    """A sentence for people, where there is trouble."""


FrameOfCaller = GangCommand | AttachmentInput | AttachmentInputEnd | AttachmentSignal | AttachmentSize
"""What only the side that wants a command may send."""

FrameOfCommand = (
    AttachmentOpened
    | AttachmentOutput
    | AttachmentErrorOutput
    | AttachmentOutputEnd
    | AttachmentNotice
    | AttachmentKeptShells
    | AttachmentEnded
)
"""What the side that runs it may send; a caller of an attachment may send the last one, too."""

AttachmentFrame = FrameOfCaller | FrameOfCommand
