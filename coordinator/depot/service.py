"""The calls of the depot: tickets are read, objects taken in, asked about and given out."""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

import grpc
import grpc.aio

from coordinator.depot.limits import DEPOT_DATA, DEPOT_STREAMS, OBJECTS_ASKED_ABOUT
from coordinator.depot.room import ProjectRoom, TicketRoom, refuse_full
from coordinator.depot.sweeping import KeptTrees
from coordinator.depot.taking import ObjectOutcome, ObjectPart, ObjectsInHand, Taking
from muster.domain.data.tree import MalformedTreeError, read_content_tree
from muster.domain.errors import ExhaustedError, InvalidJobError, MusterError, PermissionDeniedError, UnknownNameError
from muster.rpc.v1 import depot_pb2 as pb
from muster.rpc.v1.depot_pb2_grpc import DepotServiceServicer
from muster.transfer.objects import ObjectFiles
from muster.trust.depot_ticket import DEPOT_TICKET_METADATA, DepotOperation, DepotTicket, read_depot_ticket
from muster.trust.tickets import TicketError

log = logging.getLogger(__name__)

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")
_Context = grpc.aio.ServicerContext[_Request, _Response]

PUT_SILENCE = 60.0
"""Seconds without a message after which a sender is given up; what arrived stays for whoever goes on with it."""

_SETTLES_AFTER = 0.2
"""Seconds without a message after which what is whole is brought to the disk."""

_TREES_KNOWN = 64
"""Trees whose objects are remembered while they are fetched."""

_DIGEST_BYTES = 32


class DepotService(DepotServiceServicer):
    """Serves one directory of objects."""

    def __init__(self, directory: Path, key: Callable[[], bytes], clock: Callable[[], datetime]) -> None:
        """`key` gives the key of tickets for the depot. Raises OSError where the directory cannot be made."""
        self._directory = directory
        self.objects = ObjectFiles(directory)
        self.hands = ObjectsInHand()
        """The objects that are being taken in."""
        self.projects = ProjectRoom()
        """What each project keeps."""
        self.kept = KeptTrees(self.objects, clock)
        """Trees that are here and were kept lately."""
        self._room = TicketRoom()
        self._key = key
        self._clock = clock
        self._calls = 0
        self._trees: dict[str, frozenset[str]] = {}

    async def Missing(  # noqa: N802 - as gRPC calls it
        self,
        requests: AsyncIterator[pb.MissingRequest],
        context: "_Context[pb.MissingRequest, pb.MissingResponse]",
    ) -> AsyncIterator[pb.MissingResponse]:
        """Tell which objects are not here."""
        async with _Serving(self, context, DepotOperation.PUT) as ticket:
            async for request in requests:
                _refuse_many(len(request.objects))
                sizes = {_digest(each.digest): each.size for each in request.objects}
                answer = await asyncio.to_thread(self._missing, sizes)
                if request.tree:
                    answer.whole = not await asyncio.to_thread(self.kept.keep, [_digest(request.tree)])
                self.projects.refuse_over(ticket, sum(sizes[each.digest.hex()] for each in answer.missing))
                yield answer

    async def Put(  # noqa: N802 - as gRPC calls it
        self, requests: AsyncIterator[pb.PutRequest], context: "_Context[pb.PutRequest, pb.PutResponse]"
    ) -> AsyncIterator[pb.PutResponse]:
        """Take objects in."""
        async with _Serving(self, context, DepotOperation.PUT) as ticket:
            taking = Taking(self.objects, self.hands, partial(self._allow, ticket))
            try:
                async for request in _with_pauses(requests):
                    found = await (taking.settle() if request is None else taking.take(map(_part, request.parts)))
                    yield _outcomes(found)  # also where there is nothing to tell: so the sender knows that we are there
                if found := await taking.settle():
                    yield _outcomes(found)
            finally:
                taking.close()

    async def Get(  # noqa: N802 - as gRPC calls it
        self, request: pb.GetRequest, context: "_Context[pb.GetRequest, pb.GetResponse]"
    ) -> AsyncIterator[pb.GetResponse]:
        """Give parts of objects of the tree that the ticket names, or of its canonical form."""
        async with _Serving(self, context, DepotOperation.GET) as ticket:
            _refuse_many(len(request.spans))
            allowed = await self._listed(ticket.tree)
            for each in request.spans:
                if _digest(each.digest) not in allowed:
                    raise PermissionDeniedError(
                        f"the ticket is for the tree {ticket.tree}, which does not list that object"
                    )
            portions = self._portions(request.spans)
            while portion := await asyncio.to_thread(next, portions, b""):
                yield pb.GetResponse(data=portion)

    def tidy(self) -> None:
        """Forget tickets whose time is over."""
        self._room.forget(self._clock())

    def begin(self, ticket: str, operation: DepotOperation) -> DepotTicket:
        """Let a call in that shows this ticket. Raises TicketError, PermissionDeniedError or ExhaustedError."""
        found = read_depot_ticket(self._key(), ticket, self._clock())
        if found.operation is not operation:
            raise PermissionDeniedError(f"the ticket is for {found.operation.value}, not for {operation.value}")
        if self._calls >= DEPOT_STREAMS:
            raise ExhaustedError(f"the depot serves {DEPOT_STREAMS} calls at once; come again later")
        self._calls += 1
        return found

    def end(self) -> None:
        """Note that a call that was let in is over."""
        self._calls -= 1

    def _allow(self, ticket: DepotTicket, digest: str, size: int) -> None:
        self._room.take(ticket, digest, size)
        self.projects.take(ticket, digest, size)
        disk = shutil.disk_usage(self._directory)
        refuse_full(size, disk.free, disk.total)

    def _missing(self, digests: Iterable[str]) -> pb.MissingResponse:
        return pb.MissingResponse(
            missing=[
                pb.MissingObject(digest=bytes.fromhex(digest), begun=self.objects.begun(digest))
                for digest in digests
                if self.objects.use(digest) is None
            ]
        )

    async def _listed(self, tree: str) -> frozenset[str]:
        """All that a ticket for a tree opens."""
        found = self._trees.get(tree)
        if found is None:
            found = await asyncio.to_thread(self._read_tree, tree)
            self._trees[tree] = found
            if len(self._trees) > _TREES_KNOWN:
                del self._trees[next(iter(self._trees))]
        return found

    def _read_tree(self, tree: str) -> frozenset[str]:
        size = self.objects.size(tree)
        if size is None:
            raise UnknownNameError(f"the depot has no tree {tree}")
        try:
            listed = read_content_tree(b"".join(self.objects.read(tree, 0, size)))
        except MalformedTreeError as error:
            raise UnknownNameError(f"the object {tree} is no tree: {error}") from error
        return frozenset({tree, *(each.digest for each in listed.objects)})

    def _portions(self, spans: Iterable[pb.GetSpan]) -> Iterator[bytes]:
        """All that was asked for, in messages that are full, however small the parts are."""
        waiting = bytearray()
        for each in spans:
            digest, left = _digest(each.digest), each.length
            size = self.objects.size(digest)
            if size is None or each.offset + each.length > size:
                raise UnknownNameError(f"the depot does not have that part of the object {digest}")
            for found in self.objects.read(digest, each.offset, left):
                left -= len(found)
                waiting += found
                while len(waiting) >= DEPOT_DATA:
                    yield bytes(waiting[:DEPOT_DATA])
                    del waiting[:DEPOT_DATA]
            if left:
                raise UnknownNameError(f"the object {digest} is shorter than it was: its disk is damaged")
        if waiting:
            yield bytes(waiting)


class _Serving:
    """A call that was let in; what it raises becomes its status."""

    def __init__(
        self, service: DepotService, context: "_Context[_Request, _Response]", operation: DepotOperation
    ) -> None:
        self._service = service
        self._context = context
        self._operation = operation
        self._ticket: DepotTicket | None = None

    async def __aenter__(self) -> DepotTicket:
        try:
            self._ticket = self._service.begin(_shown(self._context), self._operation)
        except MusterError as error:
            await self._abort(error)
            raise
        return self._ticket

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._service.end()
        if isinstance(error, MusterError | OSError):
            await self._abort(error)

    async def _abort(self, error: MusterError | OSError) -> None:
        known = self._ticket
        log.info(
            "call refused",
            extra={"ticket": known.ticket if known else "", "cause": str(error), "operation": self._operation.value},
        )
        if isinstance(error, OSError):
            log.error("the disk of the depot fails", extra={"cause": error.strerror or str(error)})
            await self._context.abort(
                grpc.StatusCode.UNAVAILABLE, f"the disk of the depot fails: {error.strerror or 'it says not why'}"
            )
        await self._context.abort(_status_of(error), str(error))


def _status_of(error: BaseException) -> grpc.StatusCode:
    match error:
        case TicketError():
            return grpc.StatusCode.UNAUTHENTICATED
        case PermissionDeniedError():
            return grpc.StatusCode.PERMISSION_DENIED
        case UnknownNameError():
            return grpc.StatusCode.NOT_FOUND
        case ExhaustedError():
            return grpc.StatusCode.RESOURCE_EXHAUSTED
        case _:
            return grpc.StatusCode.INVALID_ARGUMENT


async def _with_pauses(requests: AsyncIterator[pb.PutRequest]) -> AsyncIterator[pb.PutRequest | None]:
    """The messages of a sender, and None once whenever no further one has come for a while."""
    waiting: asyncio.Task[pb.PutRequest | None] | None = None
    try:
        while True:
            waiting = asyncio.create_task(_next(requests), name="next part of an object")
            await asyncio.wait({waiting}, timeout=_SETTLES_AFTER)
            if not waiting.done():
                yield None
                await asyncio.wait({waiting}, timeout=PUT_SILENCE)
            if not waiting.done():
                raise ExhaustedError(f"nothing came for {PUT_SILENCE:.0f} s; go on from where the depot is")
            request = waiting.result()
            if request is None:
                return
            yield request
    finally:
        if waiting is not None:
            waiting.cancel()


async def _next(requests: AsyncIterator[pb.PutRequest]) -> pb.PutRequest | None:
    return await anext(requests, None)


def _shown(context: "_Context[_Request, _Response]") -> str:
    """The ticket in the metadata."""
    for name, value in context.invocation_metadata() or ():
        if name == DEPOT_TICKET_METADATA and isinstance(value, str):
            return value
    raise TicketError("the depot wants to be shown a ticket, which the coordinator gives out; show it as muster-ticket")


def _digest(raw: bytes) -> str:
    if len(raw) != _DIGEST_BYTES:
        raise InvalidJobError(f"an object is named by the {_DIGEST_BYTES} bytes of its SHA-256, not by {len(raw)}")
    return raw.hex()


def _part(part: pb.PutPart) -> ObjectPart:
    return ObjectPart(digest=_digest(part.object.digest), size=part.object.size, offset=part.offset, data=part.data)


def _outcomes(found: Iterable[ObjectOutcome]) -> pb.PutResponse:
    return pb.PutResponse(
        outcomes=[
            pb.PutOutcome(digest=bytes.fromhex(each.digest), stored=each.stored, offset=each.offset) for each in found
        ]
    )


def _refuse_many(count: int) -> None:
    if count > OBJECTS_ASKED_ABOUT:
        raise InvalidJobError(f"{count} objects are asked about at once; at most {OBJECTS_ASKED_ABOUT} are taken")
