"""Attachments to the executions of a node: each is begun by an order of the coordinator, and ends with a report."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Protocol

import grpc.aio

from agent.attach.companion import Companion
from agent.attach.kept.main_program import MainProgram
from agent.attach.kept.shells import KeptShells
from agent.attach.relayed.attending import NOT_ATTACHED_CODE, Attending, said_last
from agent.attach.relayed.launches import LaunchesFirst
from agent.attach.relayed.target import AttachmentTarget, CommandTarget, KeptShellsTarget, opened
from agent.attach.relayed.usage import Usage
from muster.carrying.carrier import ChannelCarrier
from muster.carrying.channel_end import ChannelEnd, ChannelLostError
from muster.domain.attachments.frame import AttachmentEnded, AttachmentTrouble
from muster.domain.attachments.request import (
    AttachmentOrder,
    AttachmentReport,
    KeptShellsRequest,
    MainProgramRequest,
    NoticeForAttached,
    ServedAttachment,
)
from muster.domain.errors import MusterError
from muster.domain.ids import ExecutionId
from muster.rpc.v1 import attachments_pb2 as pb

log = logging.getLogger(__name__)

MOST_ATTACHED = 1000
"""Attachments of a node at a time."""

PLACE_WITHIN = 10.0
"""Seconds for which a further one waits for a place; then it is refused."""

KILLED_CODE = 137
"""Exit code of what ended because its execution did."""

MOST_REPORTS_KEPT = 10_000
"""Reports that are kept while the coordinator is away; older ones are forgotten."""

RelayStream = grpc.aio.StreamStreamCall[pb.AttachmentFrame, pb.AttachmentFrame]


class NotAttachableError(MusterError):
    """An execution takes no attachment; the sentence says why, for the one who wants to attach."""


class AttachmentSite(Protocol):
    """The part of the agent that knows the executions of a node."""

    async def companion(self, execution: ExecutionId) -> Companion:
        """The companion of a running execution, started where there is none. Raises NotAttachableError."""
        ...

    async def main_program(self, execution: ExecutionId) -> MainProgram:
        """The main program of a running execution, which may not have come yet. Raises NotAttachableError."""
        ...

    def kept_shells(self, execution: ExecutionId) -> KeptShells | None:
        """The kept shells of a running execution; None: nobody has attached to it. Raises NotAttachableError."""
        ...

    async def how_it_ended(self, execution: ExecutionId) -> str | None:
        """How user code of an execution has ended just now, for people; None: it runs."""
        ...


class RelayDialler(Protocol):
    """The way to the relay."""

    def dial(self, relay: str, ticket: str) -> RelayStream:
        """Begin a stream."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class RelayedAttachments:
    """Serves them beside each other."""

    def __init__(
        self,
        site: AttachmentSite,
        relay: RelayDialler,
        report: Callable[[AttachmentReport], bool],
        usage: Usage,
        launches: LaunchesFirst,
    ) -> None:
        """`report` says whether a report could be sent; what could not is sent when there is a connection again.

        `usage` is told of every use of an execution; `launches` come before the bytes of attachments.
        """
        self._usage = usage
        self._launches = launches
        self._site = site
        self._relay = relay
        self._report = report
        self._unsent: list[tuple[AttachmentReport, ServedAttachment]] = []
        self._places = asyncio.Semaphore(MOST_ATTACHED)
        self._open: dict[str, tuple[ServedAttachment, asyncio.Task[None]]] = {}
        self._attending: dict[str, Attending] = {}

    def begin(self, order: AttachmentOrder) -> None:
        """Serve an attachment; one that is served already goes on."""
        if order.attachment in self._open:
            return
        task = asyncio.get_running_loop().create_task(self._serve(order), name=f"attachment {order.attachment}")
        self._open[order.attachment] = order.served, task
        task.add_done_callback(lambda _: self._open.pop(order.attachment, None))

    def tell(self, notice: NoticeForAttached) -> None:
        """Tell people something who are attached; attachments that are not served here are passed over."""
        for attachment in notice.attachments:
            if attachment in self._attending:
                self._attending[attachment].tell(notice.text)

    def connected(self) -> None:
        """There is a connection to the coordinator: send what it has not heard."""
        unsent, self._unsent = self._unsent, []
        for report, served in unsent:
            self._tell(report, served)

    def served(self) -> Sequence[ServedAttachment]:
        """Attachments that are open, and those that have ended and of which the coordinator has not heard."""
        return [*(served for served, _ in self._open.values()), *(served for _, served in self._unsent)]

    async def close(self) -> None:
        """End all of them; what is attached hears that its agent goes away."""
        open_ = tuple(task for _, task in self._open.values())
        for each in open_:
            each.cancel()
        await asyncio.gather(*open_, return_exceptions=True)
        await self._relay.close()

    async def _serve(self, order: AttachmentOrder) -> None:
        about = {"execution": order.execution, "attachment": order.attachment, "who": order.who}
        log.info("attached", extra={**about, "kind": order.request.kind})
        end = ChannelEnd()
        patience = order.resume_within.total_seconds()
        carrier = ChannelCarrier(end, lambda: self._relay.dial(order.relay, order.ticket), patience)
        carrying = asyncio.get_running_loop().create_task(carrier.run(), name=f"carry {order.attachment}")
        attending = Attending(
            end, order.request, lambda: self._usage.note(order.execution, datetime.now(UTC)), self._launches
        )
        ended = AttachmentEnded(code=NOT_ATTACHED_CODE, trouble=AttachmentTrouble.LOST, text="the agent has ended")
        self._attending[order.attachment] = attending
        try:
            ended = await self._ended(order, attending)
            if attending.hung_up:
                end.dealt()
                end.tell()
            else:
                await said_last(end, ended, patience)
            await carrier.leave()
        finally:
            del self._attending[order.attachment]
            carrying.cancel()
            await asyncio.gather(carrying, return_exceptions=True)
            log.info("attachment ended", extra={**about, "code": ended.code, "cause": ended.text})
            carried = attending.carried
            self._tell(
                AttachmentReport(
                    attachment=order.attachment,
                    code=ended.code,
                    text=ended.text,
                    bytes_in=carried.into,
                    bytes_out=carried.out,
                ),
                order.served,
            )

    async def _ended(self, order: AttachmentOrder, attending: Attending) -> AttachmentEnded:
        """Serve it; how it ended, whatever went wrong."""
        try:
            async with asyncio.timeout(PLACE_WITHIN):
                await self._places.acquire()
        except TimeoutError:
            return _refused(f"{MOST_ATTACHED} attachments to the executions of this node are open; end some of them")
        try:
            ended = await attending.served(self._target(order))
        except NotAttachableError as error:
            return _refused(str(error))
        except ChannelLostError as error:
            return AttachmentEnded(code=NOT_ATTACHED_CODE, trouble=AttachmentTrouble.LOST, text=str(error))
        finally:
            self._places.release()
        if ended.trouble is AttachmentTrouble.LOST:  # its companion is gone, perhaps with user code
            how = await self._site.how_it_ended(order.execution)
            if how is not None:
                return AttachmentEnded(code=KILLED_CODE, trouble=AttachmentTrouble.ENDED, text=how)
        return ended

    async def _target(self, order: AttachmentOrder) -> AttachmentTarget:
        """What an order leads to. Raises NotAttachableError, or whatever opening it raises."""
        match order.request:
            case MainProgramRequest(terminal=size):
                return CommandTarget(await (await self._site.main_program(order.execution)).attach(size))
            case KeptShellsRequest(end=name):
                return KeptShellsTarget(self._site.kept_shells(order.execution), name)
            case request:
                return await opened(await self._site.companion(order.execution), request)

    def _tell(self, report: AttachmentReport, served: ServedAttachment) -> None:
        if not self._report(report):
            self._unsent = [*self._unsent[-MOST_REPORTS_KEPT:], (report, served)]


def _refused(why: str) -> AttachmentEnded:
    return AttachmentEnded(code=NOT_ATTACHED_CODE, trouble=AttachmentTrouble.REFUSED, text=why)
