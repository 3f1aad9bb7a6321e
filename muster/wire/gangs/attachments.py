"""Values of attachments.proto: frames of streams between a program and a running execution."""

from collections.abc import Callable, Iterable, Mapping

from muster.domain.gangs.attachment import (
    COMMAND_NONCE,
    LARGEST_FRAME_DATA,
    LAST_FRAME_SIGNAL,
    LONGEST_COMMAND,
    SIGNATURE_SIZE,
    AttachmentEnded,
    AttachmentErrorOutput,
    AttachmentFrame,
    AttachmentInput,
    AttachmentInputEnd,
    AttachmentOpened,
    AttachmentOutput,
    AttachmentSignal,
    FrameOfCaller,
    FrameOfCommand,
    GangCommand,
)
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.restart import MAX_EXIT_CODE
from muster.rpc.v1 import attachments_pb2 as pb
from muster.wire import checks
from muster.wire.checks import WireError


def attachment_frame_to_wire(frame: AttachmentFrame) -> pb.AttachmentFrame:
    """One message of a stream."""
    return _from_caller(frame) if isinstance(frame, FrameOfCaller) else _from_command(frame)


def attachment_frame_from_wire(message: pb.AttachmentFrame) -> AttachmentFrame:
    """One message of a stream; raises WireError."""
    read = _READERS.get(message.WhichOneof("body") or "")
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


def _from_command(frame: FrameOfCommand) -> pb.AttachmentFrame:
    match frame:
        case AttachmentOpened():
            return pb.AttachmentFrame(opened=pb.AttachmentOpened())
        case AttachmentOutput(data=data):
            return pb.AttachmentFrame(output=data)
        case AttachmentErrorOutput(data=data):
            return pb.AttachmentFrame(error_output=data)
        case AttachmentEnded(code=code):
            return pb.AttachmentFrame(ended=pb.AttachmentEnded(code=code))


def _end(message: pb.AttachmentFrame) -> AttachmentInputEnd:
    if not message.end:
        raise WireError("AttachmentFrame.end", "is false; it is sent where there is no more input")
    return AttachmentInputEnd()


_READERS: Mapping[str, Callable[[pb.AttachmentFrame], AttachmentFrame]] = {
    "command": lambda message: _gang_command(message.command),
    "input": lambda message: AttachmentInput(data=_data(message.input, "AttachmentFrame.input")),
    "end": _end,
    "signal": lambda message: AttachmentSignal(
        number=checks.between(message.signal, 1, LAST_FRAME_SIGNAL, "AttachmentFrame.signal")
    ),
    "opened": lambda _: AttachmentOpened(),
    "output": lambda message: AttachmentOutput(data=_data(message.output, "AttachmentFrame.output")),
    "error_output": lambda message: AttachmentErrorOutput(
        data=_data(message.error_output, "AttachmentFrame.error_output")
    ),
    "ended": lambda message: AttachmentEnded(
        code=checks.between(message.ended.code, 0, MAX_EXIT_CODE, "AttachmentEnded.code")
    ),
}


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
        words=_texts(message.words, "GangCommand.words"),
        env=_texts(message.env, "GangCommand.env"),
        daemon=message.daemon,
        has_input=message.has_input,
        signature=_exactly(SIGNATURE_SIZE, message.signature, "GangCommand.signature"),
    )


def _texts(values: Iterable[bytes], where: str) -> tuple[str, ...]:
    """Words of a command, whatever their bytes are."""
    return checks.words((value.decode(errors="surrogateescape") for value in values), where)


def _exactly(size: int, data: bytes, where: str) -> bytes:
    if len(data) != size:
        raise WireError(where, f"has {len(data)} bytes; it must have {size}")
    return data


def _data(data: bytes, where: str) -> bytes:
    if not 0 < len(data) <= LARGEST_FRAME_DATA:
        raise WireError(where, f"has {len(data)} bytes; between 1 and {LARGEST_FRAME_DATA} are taken")
    return data
