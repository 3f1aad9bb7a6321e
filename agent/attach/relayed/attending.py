"""One attachment, from the order of the coordinator to the report about its end."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from agent.attach.companion import CommandRefusedError, CompanionAwayError
from agent.attach.kept.main_program import MainProgramAwayError
from agent.attach.kept.shells import TooManyKeptError
from agent.attach.relayed.launches import LaunchesFirst
from agent.attach.relayed.target import AttachmentTarget, sentence_of
from agent.core.door.packets import DoorError
from muster.carrying.channel_end import ChannelEnd, ChannelLostError
from muster.domain.attachments.frame import (
    AttachmentEnded,
    AttachmentErrorOutput,
    AttachmentInput,
    AttachmentNotice,
    AttachmentOpened,
    AttachmentOutput,
    AttachmentTrouble,
)
from muster.domain.attachments.request import AttachmentRequest, ConnectionRequest

NOT_ATTACHED_CODE = 255
"""Exit code of what was not started."""

HUNG_UP_CODE = 129
"""Exit code that is told of a command whose caller hung up: as a shell has it for SIGHUP."""


@dataclass(slots=True)
class Carried:
    """Bytes of one attachment so far."""

    into: int = 0
    out: int = 0


class Attending:
    """Serves one attachment; the bytes of both directions are counted."""

    def __init__(
        self, end: ChannelEnd, request: AttachmentRequest, used: Callable[[], None], launches: LaunchesFirst
    ) -> None:
        """`used` is called whenever bytes go to or from the execution; `launches` come before those."""
        self._used = used
        self._launches = launches
        self._end = end
        self._request = request
        self.carried = Carried()
        self._opened = False
        """Whether the other side has heard that it is attached, and not yet how that ended."""
        self.hung_up = False
        """Whether the other side has hung up, and hears nothing more."""
        self._notice: asyncio.Task[None] | None = None
        """The last notice; it waits while the other side deals with too little, as everything does."""

    async def served(self, opening: Awaitable[AttachmentTarget]) -> AttachmentEnded:
        """Serve it until what is attached to has ended, or the other side hangs up. Raises ChannelLostError."""
        try:
            target = await opening
        except CommandRefusedError as error:
            return AttachmentEnded(code=error.code, trouble=AttachmentTrouble.NOT_STARTED, text=str(error))
        except (CompanionAwayError, MainProgramAwayError, TooManyKeptError, DoorError) as error:
            return AttachmentEnded(code=NOT_ATTACHED_CODE, trouble=AttachmentTrouble.REFUSED, text=str(error))
        except OSError as error:
            return AttachmentEnded(
                code=1, trouble=AttachmentTrouble.NOT_REACHED, text=_not_reached(self._request, error)
            )
        try:
            await self._end.send(AttachmentOpened())
            self._opened = True
            return await self._between(target)
        finally:
            self._opened = False
            target.hang_up()
            await self._forget_notice()

    def tell(self, text: str) -> None:
        """Tell the people on the other side something, while they are attached; nothing as long as a notice waits."""
        if self._opened and (self._notice is None or self._notice.done()):
            self._notice = asyncio.get_running_loop().create_task(self._say(text), name="attachment: notice")

    async def _say(self, text: str) -> None:
        with suppress(ChannelLostError):
            await self._end.send(AttachmentNotice(text=text))

    async def _forget_notice(self) -> None:
        """Nobody says anything more but how it ended."""
        if self._notice is not None:
            self._notice.cancel()
            await asyncio.gather(self._notice, return_exceptions=True)

    async def _between(self, target: AttachmentTarget) -> AttachmentEnded:
        """Carry both directions beside each other, each as fast as it is read."""
        loop = asyncio.get_running_loop()
        reading = loop.create_task(self._read(target), name="attachment: from the execution")
        taking = loop.create_task(self._take(target), name="attachment: to the execution")
        try:
            await asyncio.wait((reading, taking), return_when=asyncio.FIRST_COMPLETED)
            return (reading if reading.done() else taking).result()
        finally:
            for each in (reading, taking):
                each.cancel()
            await asyncio.gather(reading, taking, return_exceptions=True)

    async def _read(self, target: AttachmentTarget) -> AttachmentEnded:
        while True:
            frame = await target.read()
            match frame:
                case AttachmentEnded():
                    return frame
                case AttachmentOutput(data=data) | AttachmentErrorOutput(data=data):
                    self.carried.out += len(data)
                    self._used()
                    await self._launches.turn(len(data))
                case _:
                    pass
            await self._end.send(frame)

    async def _take(self, target: AttachmentTarget) -> AttachmentEnded:
        while True:
            frame = await self._end.receive()
            match frame:
                case AttachmentEnded():
                    self.hung_up = True
                    return AttachmentEnded(code=HUNG_UP_CODE)
                case AttachmentInput(data=data):
                    self.carried.into += len(data)
                    self._used()
                    await self._launches.turn(len(data))
                case _:
                    pass
            await target.take(frame)


async def said_last(end: ChannelEnd, ended: AttachmentEnded, patience: float) -> None:
    """Say how it ended, and wait until the other side has dealt with everything, for so many seconds at most."""
    with suppress(ChannelLostError, TimeoutError):
        async with asyncio.timeout(patience):
            end.dealt()
            await end.send(ended)
            await end.settled()


def _not_reached(request: AttachmentRequest, error: OSError) -> str:
    """Why nothing was reached, for people."""
    if isinstance(request, ConnectionRequest) and isinstance(error, ConnectionRefusedError):
        return f"nothing listens at port {request.port} ({sentence_of(error)})"
    return sentence_of(error)
