"""Values of attachments.proto: frames of streams between a program and a running execution."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from muster.domain.attachments.channel import ChannelConsumed, ChannelHello, ChannelMessage, NumberedFrame
from muster.domain.attachments.frame import (
    COMMAND_NONCE,
    LARGEST_CHANNEL_DATA,
    LARGEST_FRAME_DATA,
    LAST_FRAME_SIGNAL,
    LONGEST_COMMAND,
    MOST_KEPT_SHELLS,
    SIGNATURE_SIZE,
    AttachmentEnded,
    AttachmentErrorOutput,
    AttachmentFrame,
    AttachmentInput,
    AttachmentInputEnd,
    AttachmentKeptShells,
    AttachmentNotice,
    AttachmentOpened,
    AttachmentOutput,
    AttachmentOutputEnd,
    AttachmentSignal,
    AttachmentSize,
    AttachmentTrouble,
    FrameOfCaller,
    GangCommand,
    KeptShell,
)
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.restart import MAX_EXIT_CODE
from muster.rpc.v1 import attachments_pb2 as pb
from muster.wire import checks
from muster.wire.attachments.requests import terminal_size_from_wire, terminal_size_to_wire, texts_from_wire
from muster.wire.checks import WireError

_FrameWithoutList = (
    AttachmentOpened
    | AttachmentOutput
    | AttachmentErrorOutput
    | AttachmentOutputEnd
    | AttachmentNotice
    | AttachmentEnded
)

Frame = TypeVar("Frame", bound=AttachmentFrame)


def attachment_frame_to_wire(frame: AttachmentFrame) -> pb.AttachmentFrame:
    """One message of a stream."""
    if isinstance(frame, FrameOfCaller):
        return _from_caller(frame)
    if isinstance(frame, AttachmentKeptShells):
        listed = [pb.KeptShell(name=each.name, pid=each.pid, attached=each.attached) for each in frame.shells]
        return pb.AttachmentFrame(kept_shells=pb.KeptShellList(shells=listed))
    return _from_command(frame)


def attachment_frame_from_wire(message: pb.AttachmentFrame) -> AttachmentFrame:
    """One message of a stream between agents; raises WireError."""
    return _frame(message, LARGEST_FRAME_DATA)


def channel_message_to_wire(said: ChannelMessage) -> pb.AttachmentFrame:
    """One message of a channel."""
    match said:
        case ChannelHello(received=received):
            return pb.AttachmentFrame(hello=pb.AttachmentHello(received=received))
        case ChannelConsumed(number=number):
            return pb.AttachmentFrame(consumed=number)
        case NumberedFrame(number=number, frame=frame):
            message = attachment_frame_to_wire(frame)
            message.number = number
            return message


def channel_message_from_wire(message: pb.AttachmentFrame) -> ChannelMessage:
    """One message of a channel; raises WireError."""
    match message.WhichOneof("body"):
        case "hello":
            return ChannelHello(received=message.hello.received)
        case "consumed":
            return ChannelConsumed(number=message.consumed)
        case "command":
            raise WireError("AttachmentFrame.command", "is for streams between agents")
    if not message.number:
        raise WireError("AttachmentFrame.number", "is missing")
    return NumberedFrame(number=message.number, frame=_frame(message, LARGEST_CHANNEL_DATA))


def _frame(message: pb.AttachmentFrame, largest: int) -> AttachmentFrame:
    match message.WhichOneof("body"):
        case "input":
            return AttachmentInput(data=_data(message.input, "AttachmentFrame.input", largest))
        case "output":
            return AttachmentOutput(data=_data(message.output, "AttachmentFrame.output", largest))
        case "error_output":
            return AttachmentErrorOutput(data=_data(message.error_output, "AttachmentFrame.error_output", largest))
        case body:
            read = _READERS.get(body or "")
            if read is None:
                raise WireError("AttachmentFrame", "says nothing that is known")
            return read(message)


def _from_caller(frame: FrameOfCaller) -> pb.AttachmentFrame:
    match frame:
        case GangCommand():
            return pb.AttachmentFrame(command=_gang_command_to_wire(frame))
        case AttachmentInput(data=data):
            return pb.AttachmentFrame(input=data)
        case AttachmentInputEnd():
            return pb.AttachmentFrame(end=True)
        case AttachmentSignal(number=number):
            return pb.AttachmentFrame(signal=number)
        case AttachmentSize(size=size):
            return pb.AttachmentFrame(size=terminal_size_to_wire(size))


def _from_command(frame: _FrameWithoutList) -> pb.AttachmentFrame:
    match frame:
        case AttachmentOpened():
            return pb.AttachmentFrame(opened=pb.AttachmentOpened())
        case AttachmentOutput(data=data):
            return pb.AttachmentFrame(output=data)
        case AttachmentErrorOutput(data=data):
            return pb.AttachmentFrame(error_output=data)
        case AttachmentOutputEnd():
            return pb.AttachmentFrame(output_end=True)
        case AttachmentNotice(text=text):
            return pb.AttachmentFrame(notice=text)
        case AttachmentEnded(code=code, trouble=trouble, text=text):
            return pb.AttachmentFrame(ended=pb.AttachmentEnded(code=code, trouble=trouble, text=text))


def _true(value: bool, where: str, frame: Frame) -> Frame:
    if not value:
        raise WireError(where, "is false; it is sent where it is true")
    return frame


_READERS: Mapping[str, Callable[[pb.AttachmentFrame], AttachmentFrame]] = {
    "command": lambda message: _gang_command(message.command),
    "end": lambda message: _true(message.end, "AttachmentFrame.end", AttachmentInputEnd()),
    "signal": lambda message: AttachmentSignal(
        number=checks.between(message.signal, 1, LAST_FRAME_SIGNAL, "AttachmentFrame.signal")
    ),
    "size": lambda message: AttachmentSize(size=terminal_size_from_wire(message.size)),
    "opened": lambda _: AttachmentOpened(),
    "output_end": lambda message: _true(message.output_end, "AttachmentFrame.output_end", AttachmentOutputEnd()),
    "notice": lambda message: AttachmentNotice(text=checks.message(message.notice)),
    "kept_shells": lambda message: _kept_shells(message.kept_shells),
    "ended": lambda message: AttachmentEnded(
        code=checks.between(message.ended.code, 0, MAX_EXIT_CODE, "AttachmentEnded.code"),
        trouble=checks.word(AttachmentTrouble, message.ended.trouble, "AttachmentEnded.trouble"),
        text=checks.message(message.ended.text),
    ),
}


def _kept_shells(message: pb.KeptShellList) -> AttachmentKeptShells:
    if len(message.shells) > MOST_KEPT_SHELLS:
        raise WireError("KeptShellList.shells", f"are {len(message.shells)}; at most {MOST_KEPT_SHELLS} are taken")
    return AttachmentKeptShells(
        shells=tuple(
            KeptShell(
                name=checks.text(each.name, "KeptShell.name"),
                pid=each.pid,
                attached=each.attached,
            )
            for each in message.shells
        )
    )


def _gang_command_to_wire(command: GangCommand) -> pb.GangCommand:
    return pb.GangCommand(
        job=command.job,
        attempt=command.attempt,
        from_rank=command.from_rank,
        to_rank=command.to_rank,
        node=command.node,
        nonce=command.nonce,
        signature=command.signature,
        words=[word.encode(errors="surrogateescape") for word in command.words],
        env=[variable.encode(errors="surrogateescape") for variable in command.env],
        daemon=command.daemon,
        has_input=command.has_input,
    )


def _gang_command(message: pb.GangCommand) -> GangCommand:
    if not message.words:
        raise WireError("GangCommand.words", "is empty")
    size = sum(map(len, message.words)) + sum(map(len, message.env))
    if size > LONGEST_COMMAND:
        raise WireError(
            "GangCommand.words", f"has {size} bytes with the variables; at most {LONGEST_COMMAND} are taken"
        )
    if any(each.find(b"=") < 1 for each in message.env):
        raise WireError("GangCommand.env", "has a variable that is not written as NAME=VALUE")
    return GangCommand(
        job=JobId(checks.identifier(message.job, "GangCommand.job")),
        attempt=checks.between(message.attempt, 1, checks.MAX_COUNT, "GangCommand.attempt"),
        from_rank=checks.between(message.from_rank, 0, checks.MAX_SIZE - 1, "GangCommand.from_rank"),
        to_rank=checks.between(message.to_rank, 0, checks.MAX_SIZE - 1, "GangCommand.to_rank"),
        node=NodeId(checks.identifier(message.node, "GangCommand.node")),
        nonce=_exactly(COMMAND_NONCE, message.nonce, "GangCommand.nonce"),
        words=texts_from_wire(message.words, "GangCommand.words"),
        env=texts_from_wire(message.env, "GangCommand.env"),
        daemon=message.daemon,
        has_input=message.has_input,
        signature=_exactly(SIGNATURE_SIZE, message.signature, "GangCommand.signature"),
    )


def _exactly(size: int, data: bytes, where: str) -> bytes:
    if len(data) != size:
        raise WireError(where, f"has {len(data)} bytes; it must have {size}")
    return data


def _data(data: bytes, where: str, largest: int) -> bytes:
    if not 0 < len(data) <= largest:
        raise WireError(where, f"has {len(data)} bytes; between 1 and {largest} are taken")
    return data
