"""Streams between a program and a running execution: what goes over them, as values."""

from dataclasses import dataclass

from muster.domain.ids import AttemptId, JobId, NodeId

LARGEST_FRAME_DATA = 64 * 1024
"""Bytes of input or output in one frame."""

LONGEST_COMMAND = 128 * 1024
"""Bytes of the words and variables of one command."""

COMMAND_NONCE = 16
"""Bytes that are made for each command."""

SIGNATURE_SIZE = 32
"""Bytes of an HMAC-SHA256."""

LAST_FRAME_SIGNAL = 64


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
class AttachmentOpened:
    """The command runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentOutput:
    """A piece of what the command prints."""

    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentErrorOutput:
    """A piece of what the command prints as errors."""

    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentEnded:
    """How the command ended; the last frame."""

    code: int


FrameOfCaller = GangCommand | AttachmentInput | AttachmentInputEnd | AttachmentSignal
"""What the side that wants a command may send."""

FrameOfCommand = AttachmentOpened | AttachmentOutput | AttachmentErrorOutput | AttachmentEnded
"""What the side that runs it may send."""

AttachmentFrame = FrameOfCaller | FrameOfCommand
