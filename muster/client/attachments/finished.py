"""A command that was run in an execution, from its input to its exit code."""

import asyncio
from dataclasses import dataclass

from muster.client.attachments.stream import AttachmentStream
from muster.domain.attachments.frame import (
    LARGEST_CHANNEL_DATA,
    AttachmentEnded,
    AttachmentErrorOutput,
    AttachmentInput,
    AttachmentInputEnd,
    AttachmentOutput,
    AttachmentTrouble,
)
from muster.domain.errors import ConflictError, ExhaustedError, MusterError, PermissionDeniedError, UnavailableError

MOST_COLLECTED = 64 * 1024 * 1024
"""Bytes of output that `run` gathers of one command; `open` has no such limit."""

_UNAVAILABLE = frozenset({AttachmentTrouble.LOST, AttachmentTrouble.NOT_REACHED})


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedCommand:
    """How a command in an execution ended, and what it printed."""

    rank: int
    """The execution in which it ran."""
    code: int
    """The exit code, or 128 and the number of the signal that ended it. 127: not found, 126: not to be run."""
    output: bytes
    error_output: bytes


async def finished(stream: AttachmentStream, rank: int, given: bytes) -> FinishedCommand:
    """Run an opened command with this input to its end. Raises MusterError where it did not run to its end."""
    feeding = asyncio.get_running_loop().create_task(_feed(stream, given), name="input of a command")
    output, error_output = bytearray(), bytearray()
    try:
        while True:
            match await stream.receive():
                case AttachmentOutput(data=data):
                    output += data
                case AttachmentErrorOutput(data=data):
                    error_output += data
                case AttachmentEnded() as ended:
                    raise_if_broken(ended)
                    return FinishedCommand(
                        rank=rank, code=ended.code, output=bytes(output), error_output=bytes(error_output)
                    )
            if len(output) + len(error_output) > MOST_COLLECTED:
                raise ExhaustedError(
                    f"the command printed more than {MOST_COLLECTED // 2**20} MiB; `attachments.open` takes any amount"
                )
    finally:
        feeding.cancel()
        await asyncio.gather(feeding, return_exceptions=True)


def raise_if_broken(ended: AttachmentEnded) -> None:
    """Raise MusterError where an attachment ended before what was attached to did."""
    error = error_of_end(ended)
    if error is not None:
        raise error


def error_of_end(ended: AttachmentEnded) -> MusterError | None:
    """What went wrong with an attachment; None: it ended with what was attached to, or that could not be started."""
    if ended.trouble in {AttachmentTrouble.NONE, AttachmentTrouble.NOT_STARTED}:
        return None
    if ended.trouble in _UNAVAILABLE:
        return UnavailableError(ended.text)
    if ended.trouble is AttachmentTrouble.CLOSED:
        return PermissionDeniedError(ended.text)
    return ConflictError(ended.text)


async def _feed(stream: AttachmentStream, given: bytes) -> None:
    for at in range(0, len(given), LARGEST_CHANNEL_DATA):
        await stream.send(AttachmentInput(data=given[at : at + LARGEST_CHANNEL_DATA]))
    await stream.send(AttachmentInputEnd())
