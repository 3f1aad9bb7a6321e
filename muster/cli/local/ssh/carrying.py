"""One SSH channel and one attachment: what each says goes to the other, as fast as the slower one takes it."""

import asyncio
from typing import Protocol

from muster.cli.local.ssh.inflow import Inflow
from muster.client.attachments.stream import AttachmentStream
from muster.domain.attachments.frame import (
    AttachmentEnded,
    AttachmentErrorOutput,
    AttachmentOpened,
    AttachmentOutput,
    AttachmentOutputEnd,
)


class ChannelOutput(Protocol):
    """Where to what comes from the execution goes."""

    def output(self, data: bytes) -> None:
        """Pass output on."""
        ...

    def error_output(self, data: bytes) -> None:
        """Pass error output on."""
        ...

    def output_end(self) -> None:
        """Say that no more output comes."""
        ...

    async def room(self) -> None:
        """Wait until more can be passed on."""
        ...


async def carried(
    stream: AttachmentStream, inflow: Inflow, output: ChannelOutput, gone: asyncio.Event, *, drain: float = 0.0
) -> AttachmentEnded | None:
    """How an attachment ended, which is closed then; None where the client has gone before.

    What the client has sent before it was `gone` still gets `drain` seconds to be taken.
    """
    try:
        async with asyncio.TaskGroup() as tasks:
            sending = tasks.create_task(_send(stream, inflow), name="input of an SSH channel")
            passing = tasks.create_task(_pass_on(stream, output), name="output of an SSH channel")
            going = tasks.create_task(gone.wait(), name="end of an SSH channel")
            await asyncio.wait({passing, going}, return_when=asyncio.FIRST_COMPLETED)
            if not passing.done() and drain:
                await asyncio.wait({passing, sending}, timeout=drain, return_when=asyncio.FIRST_COMPLETED)
            for task in (sending, passing, going):
                task.cancel()
    finally:
        await stream.close()
    return None if passing.cancelled() else passing.result()


async def _send(stream: AttachmentStream, inflow: Inflow) -> None:
    while (frame := await inflow.take()) is not None:
        await stream.send(frame)


async def _pass_on(stream: AttachmentStream, output: ChannelOutput) -> AttachmentEnded:
    while True:
        match await stream.receive():
            case AttachmentOutput(data=data):
                output.output(data)
            case AttachmentErrorOutput(data=data):
                output.error_output(data)
            case AttachmentOutputEnd():
                output.output_end()
            case AttachmentEnded() as ended:
                return ended
            case AttachmentOpened():
                pass
        await output.room()
