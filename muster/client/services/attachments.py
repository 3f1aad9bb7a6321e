"""The SDK for running executions: commands, terminals, ports and files in them."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import grpc.aio

from muster.carrying.carrier import ChannelCarrier
from muster.carrying.channel_end import ChannelEnd
from muster.client.attachments.attachment import Attachment
from muster.client.attachments.finished import FinishedCommand, finished, raise_if_broken
from muster.client.attachments.port_forward import PortForward
from muster.client.calls import Calls
from muster.domain.attachments.frame import AttachmentEnded, AttachmentKeptShells, KeptShell
from muster.domain.attachments.request import (
    HERE,
    AttachmentPass,
    AttachmentRequest,
    CommandRequest,
    ConnectionRequest,
    FilesRequest,
    KeptShellsRequest,
    OpenedAttachment,
)
from muster.rpc.channel import RELAY_CHANNEL_OPTIONS, Credentials, open_channel
from muster.rpc.relay import TICKET_METADATA
from muster.rpc.v1 import attachments_pb2 as pb
from muster.rpc.v1.attachments_pb2_grpc import AttachmentServiceStub, RelayServiceStub
from muster.wire.attachments.requests import (
    attachment_pass_from_wire,
    attachment_request_to_wire,
    opened_attachment_from_wire,
)

if TYPE_CHECKING:
    from muster.client.files.copying import TransferProgress, TransferResult
    from muster.client.services.copies import WrittenPlace

FORWARD_PAUSES = (0.2, 0.5, 1.0, 2.0, *(3.0,) * 9)
"""Seconds between the tries of a new connection of a forward while it cannot be had: half a minute, for a restart."""


class AttachmentsClient:
    """Attachments to running executions, reached as `client.attachments`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._relays: dict[str, grpc.aio.Channel] = {}

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of AttachmentService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(AttachmentServiceStub)

    async def open(
        self,
        job: str,
        request: AttachmentRequest,
        *,
        rank: int | None = None,
        on_break: Callable[[str], None] = lambda _: None,
        on_notice: Callable[[str], None] = lambda _: None,
    ) -> Attachment:
        """Attach to a running execution; without `rank` to the lowest that runs.

        The attachment outlives breaks of the connection. `on_break` is told why there is none, and an empty text once
        there is one again. `on_notice` is told what concerns all who are attached: that the job is about to be stopped
        because nobody uses it. Raises ConflictError for an execution that does not run, and PermissionDeniedError.

        >>> async with await client.attachments.open("train", CommandRequest(words=("nvidia-smi",))) as attachment:
        ...     print(await attachment.receive())
        """
        return await self._opened(job, request, rank, on_break=on_break, on_notice=on_notice)

    async def _opened(
        self,
        job: str,
        request: AttachmentRequest,
        rank: int | None,
        *,
        on_break: Callable[[str], None] = lambda _: None,
        on_notice: Callable[[str], None] = lambda _: None,
        pauses: tuple[float, ...] = (),
    ) -> Attachment:
        """An open attachment, which is asked for again after each pause while it cannot be had just now."""
        asked = pb.OpenAttachmentRequest(job=job, rank=rank, what=attachment_request_to_wire(request))
        shown = attachment_pass_from_wire(await self._calls.ask(self._stub.Open, asked, pauses=pauses))
        tickets = [shown.ticket]

        async def renew() -> None:
            again = pb.OpenAttachmentRequest(again=shown.attachment)
            tickets[0] = attachment_pass_from_wire(await self._calls.ask(self._stub.Open, again)).ticket

        def dial() -> "grpc.aio.StreamStreamCall[pb.AttachmentFrame, pb.AttachmentFrame]":
            stub: Any = RelayServiceStub(self._relay(shown))
            call: grpc.aio.StreamStreamCall[pb.AttachmentFrame, pb.AttachmentFrame] = stub.Carry(
                metadata=((TICKET_METADATA, tickets[0]),)
            )
            return call

        end = ChannelEnd()
        within = shown.resume_within.total_seconds()
        return Attachment(shown, end, ChannelCarrier(end, dial, within, renew=renew, on_break=on_break), on_notice)

    async def run(
        self,
        job: str,
        words: Sequence[str],
        *,
        rank: int | None = None,
        env: Mapping[str, str] | None = None,
        workdir: str = "",
        given: bytes = b"",
    ) -> FinishedCommand:
        """Run a command in a running execution to its end; without `rank` in the lowest that runs.

        `given` is what it reads. Of very much output ExhaustedError is raised; `open` has no such limit.

        >>> done = await client.attachments.run("train", ["nvidia-smi", "-L"], rank=2)
        >>> print(done.code, done.output.decode())
        """
        variables = tuple(f"{name}={value}" for name, value in (env or {}).items())
        request = CommandRequest(words=tuple(words), env=variables, workdir=workdir, has_input=bool(given))
        async with await self.open(job, request, rank=rank) as attachment:
            return await finished(attachment, attachment.shown.rank, given)

    async def forward(
        self,
        job: str,
        port: int,
        *,
        rank: int | None = None,
        host: str = HERE,
        at: str = f"{HERE}:0",
        on_trouble: Callable[[str], None] = lambda _: None,
    ) -> PortForward:
        """Have a port of this machine lead to one of a running execution; `at` is HOST:PORT here, and port 0 takes any.

        `host` is where the execution connects to. A new connection waits for up to 30 s for a coordinator, a relay or a
        node that is away: a program that is restarted costs nobody who uses it an error. `on_trouble` is told why a
        connection came to nothing, and what `on_notice` of `open` is told. Close what is given, or use it with
        `async with`.

        >>> async with await client.attachments.forward("dev", 8888) as forward:
        ...     print(f"http://{forward.address}")
        """
        request = ConnectionRequest(port=port, host=host)

        async def connect() -> Attachment:
            return await self._opened(job, request, rank, on_notice=on_trouble, pauses=FORWARD_PAUSES)

        forward = PortForward(connect, on_trouble)
        here, _, local = at.rpartition(":")
        await forward.listen(here.removeprefix("[").removesuffix("]"), int(local))
        return forward

    async def copy(
        self,
        sources: "WrittenPlace | Sequence[WrittenPlace]",
        target: "WrittenPlace",
        *,
        times: bool = True,
        on_progress: "Callable[[TransferProgress], None]" = lambda _: None,
    ) -> "TransferResult":
        """Copy files and directories to a running execution or from it, as `muster cp` does.

        `JOB:PATH` and `JOB:RANK:PATH` are in an execution; other texts, and every `Path`, are on this machine. Each
        file is compared with what the other side holds, and takes its place when it is whole. What could not be read
        is in `failed` of the answer, and hinders no other file. `on_progress` is told how far it is; `times` has files
        keep theirs. Raises FileTransferError, ConflictError where a target would be lost, and OSError for files here.

        >>> done = await client.attachments.copy("dev:results", "here/", on_progress=print)
        >>> print(done.files, done.size, [each.path for each in done.failed])
        """
        from muster.client.files.byte_stream import AttachmentBytes  # noqa: PLC0415 - seldom
        from muster.client.services.copies import copied  # noqa: PLC0415 - as above

        async def open_files(job: str, rank: int | None) -> AttachmentBytes:
            return AttachmentBytes(await self.open(job, FilesRequest(), rank=rank))

        return await copied(sources, target, open_files, times=times, on_progress=on_progress)

    async def kept(self, job: str, *, rank: int | None = None) -> tuple[KeptShell, ...]:
        """The kept shells of a running execution, by name; without `rank` of the lowest that runs.

        >>> names = [each.name for each in await client.attachments.kept("dev")]
        """
        async with await self.open(job, KeptShellsRequest(), rank=rank) as attachment:
            listed: tuple[KeptShell, ...] = ()
            while not isinstance(frame := await attachment.receive(), AttachmentEnded):
                if isinstance(frame, AttachmentKeptShells):
                    listed = frame.shells
            raise_if_broken(frame)
            return listed

    async def end_kept(self, job: str, name: str, *, rank: int | None = None) -> None:
        """Have a kept shell of a running execution hang up; without `rank` of the lowest that runs.

        Raises ConflictError where there is none of that name.

        >>> await client.attachments.end_kept("dev", "work")
        """
        async with await self.open(job, KeptShellsRequest(end=name), rank=rank) as attachment:
            while not isinstance(frame := await attachment.receive(), AttachmentEnded):
                pass
            raise_if_broken(frame)

    async def list(self, job: str = "") -> tuple[OpenedAttachment, ...]:
        """Attachments that are open, the oldest first: of one job, or of all that one may look at.

        >>> accounts = {each.account for each in await client.attachments.list("train")}
        """
        answer = await self._calls.ask(self._stub.List, pb.ListAttachmentsRequest(job=job))
        return tuple(map(opened_attachment_from_wire, answer.attachments))

    async def close(self, attachment: str) -> None:
        """End an attachment of one's own, or as an operator any in the project.

        >>> await client.attachments.close("a7k2")
        """
        await self._calls.ask(self._stub.Close, pb.CloseAttachmentRequest(attachment=attachment))

    def _relay(self, shown: AttachmentPass) -> grpc.aio.Channel:
        """The channel to the relay; one for all attachments that go over it."""
        host, _, port = shown.relay.rpartition(":")
        address = f"{host or self._calls.connection.address.rpartition(':')[0]}:{port}"
        if not self._relays:
            self._calls.closing.append(self._close_relays)
        if address not in self._relays:
            shown_there = Credentials(authority=self._calls.connection.credentials.authority)
            self._relays[address] = open_channel(address, shown_there, RELAY_CHANNEL_OPTIONS)
        return self._relays[address]

    async def _close_relays(self) -> None:
        while self._relays:
            await self._relays.popitem()[1].close()
