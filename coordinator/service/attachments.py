"""Operations on attachments: who may attach to which running execution; the bytes go through the relay."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from coordinator.clock import wall_time
from coordinator.core.cluster.cluster import Cluster
from coordinator.engine.engine import Engine, Freshness
from coordinator.service.attaching.lines import AgentLines
from coordinator.service.attaching.place import AttachPlace, attach_place
from coordinator.service.attaching.relay_side import RelaySide
from coordinator.service.finding import resolved
from coordinator.service.operations import Operation, Operations, audit_entry
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.caller import Caller, CallerKind
from coordinator.trust.registry import Registry
from muster.domain.attachments.request import (
    AttachmentOrder,
    AttachmentPass,
    AttachmentReport,
    AttachmentRequest,
    CommandRequest,
    ConnectionRequest,
    FilesRequest,
    OpenedAttachment,
)
from muster.domain.errors import PermissionDeniedError, UnavailableError, UnknownNameError
from muster.domain.fleet.access import Access
from muster.domain.ids import NodeId
from muster.trust.tickets import TicketSide

ATTACHMENT_ID_BYTES = 6
RESUME_WITHIN = timedelta(minutes=10)
"""The time for which either side of a terminal or a connection may be away."""
FILES_RESUME_WITHIN = timedelta(seconds=60)
"""The same for files: what was copied can be copied again."""
LONGEST_FIRST_WORD = 40
"""Characters of the first word of a command that are told of it."""
END = "attachments.end"
"""What the audit log calls the end of an attachment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Open:
    opened: OpenedAttachment
    project: str
    who: Caller
    resume_within: timedelta


class AttachmentOperations:
    """What callers may do with attachments."""

    def __init__(
        self,
        operations: Operations,
        engine: Engine,
        registry: Registry,
        audit: AuditLog,
        relay: RelaySide | None,
        lines: AgentLines,
    ) -> None:
        self._operations = operations
        self._engine = engine
        self._registry = registry
        self._audit = audit
        self._relay = relay
        self._lines = lines
        self._open: dict[str, _Open] = {}

    async def open(self, caller: Caller, job: str, rank: int | None, request: AttachmentRequest) -> AttachmentPass:
        """Open an attachment to a running execution; without a rank to the lowest that runs."""
        async with self._operations.begin(caller, "attachments.open", job) as operation:

            def find(cluster: Cluster, now: datetime) -> AttachPlace:
                return attach_place(cluster, resolved(operation, cluster, job), rank, now)

            place = await self._engine.query(find, after=Freshness.COMMITTED)
            operation.target = _target(place, request)
            self._require_allowed(operation, place)
            relay, address = self._relay_there()
            now = wall_time()
            attachment = secrets.token_hex(ATTACHMENT_ID_BYTES)
            within = FILES_RESUME_WITHIN if isinstance(request, FilesRequest) else RESUME_WITHIN
            held = _Open(
                opened=OpenedAttachment(
                    attachment=attachment,
                    job=place.job,
                    job_name=place.job_name,
                    rank=place.rank,
                    node=place.node,
                    account=caller.name,
                    kind=request.kind,
                    about=_about(request),
                    since=now,
                    bytes_in=0,
                    bytes_out=0,
                ),
                project=place.project,
                who=caller,
                resume_within=within,
            )
            self._open[attachment] = held
            relay.opened(attachment)
            try:
                await self._lines.order(
                    place.node, _order(held, place, request, address, _ticket(relay, held, TicketSide.AGENT, now))
                )
            except BaseException:
                self._forget(attachment, "its agent could not be told")
                raise
            return _pass(held, address, _ticket(relay, held, TicketSide.CLIENT, now))

    async def again(self, caller: Caller, attachment: str) -> AttachmentPass:
        """Another ticket for an attachment that the caller has open."""
        async with self._operations.begin(caller, "attachments.open", attachment) as operation:
            held = self._held(operation, attachment)
            if held.who.name != caller.name:
                raise self._not_there(operation, attachment)
            relay, address = self._relay_there()
            return _pass(held, address, _ticket(relay, held, TicketSide.CLIENT, wall_time()))

    async def list(self, caller: Caller, job: str = "") -> Sequence[OpenedAttachment]:
        """Attachments that are open in projects that the caller may look at, the oldest first."""
        async with self._operations.begin(caller, "attachments.list", job) as operation:
            only = None
            if job:

                def find(cluster: Cluster, _: datetime) -> str:
                    return resolved(operation, cluster, job)

                only = await self._engine.query(find, after=Freshness.COMMITTED)
            return [
                held.opened
                for held in self._open.values()
                if caller.may(Access.VIEWER, held.project) and only in {None, held.opened.job}
            ]

    async def close(self, caller: Caller, attachment: str) -> None:
        """End an attachment: one of the caller, or any other for an operator of its project."""
        async with self._operations.begin(caller, "attachments.close", attachment) as operation:
            held = self._held(operation, attachment)
            if held.who.name != caller.name and not caller.may(Access.OPERATOR, held.project):
                raise PermissionDeniedError(
                    f"attachment {attachment} is of {held.who.name}; ending it needs operator access to project "
                    f"{held.project}"
                )
            self._cut(attachment, f"{caller.name} has closed it")

    def reported(self, node: NodeId, report: AttachmentReport) -> None:
        """Take in how an attachment ended, from the agent of its node."""
        held = self._open.get(report.attachment)
        if held is None or held.opened.node != node:
            return
        how = report.text or f"exit code {report.code}"
        self._ended(held, replace(held.opened, bytes_in=report.bytes_in, bytes_out=report.bytes_out), how)

    def look_again(self) -> None:
        """End the attachments of those who may not attach any more."""
        now = wall_time()
        for attachment, held in list(self._open.items()):
            if not self._registry.still_counts(held.who, now):
                self._cut(attachment, "what you have shown counts no more")

    def _require_allowed(self, operation: Operation, place: AttachPlace) -> None:
        caller = operation.caller
        if place.owner == caller.name or caller.may(Access.OPERATOR, place.project) or caller.kind is CallerKind.LOCAL:
            return
        raise PermissionDeniedError(
            f"{place.job_name} was submitted by another account; attaching to it needs operator access to project "
            f"{place.project}, or `muster projects allow {place.project} --attach members`"
        )

    def _relay_there(self) -> tuple[RelaySide, str]:
        """The relay and its address; raises UnavailableError where there is none now."""
        address = None if self._relay is None else self._relay.address
        if self._relay is None or address is None:
            raise UnavailableError("the relay, through which attachments go, is not there; is muster-relay running?")
        return self._relay, address

    def _cut(self, attachment: str, why: str) -> None:
        if self._relay is not None:
            self._relay.close(attachment, why)

    def _held(self, operation: Operation, attachment: str) -> _Open:
        held = self._open.get(attachment)
        if held is None or not operation.caller.may(Access.VIEWER, held.project):
            raise self._not_there(operation, attachment)
        operation.require_access(held.project)
        return held

    def _not_there(self, operation: Operation, attachment: str) -> UnknownNameError:
        operation.unseen()
        return UnknownNameError(
            f"there is no attachment {attachment!r}; `muster attachments` lists those that are open"
        )

    def _ended(self, held: _Open, last: OpenedAttachment, how: str) -> None:
        self._forget(held.opened.attachment, "")
        seconds = (wall_time() - last.since).total_seconds()
        result = f"ok, {seconds:.0f} s, {last.bytes_in} bytes in, {last.bytes_out} bytes out, {how}"
        target = f"{last.job} rank {last.rank} {last.kind} {last.about}".rstrip()
        self._audit.note(audit_entry(held.who, END, target, result))

    def _forget(self, attachment: str, why: str) -> None:
        del self._open[attachment]
        self._cut(attachment, why)


def _about(request: AttachmentRequest) -> str:
    match request:
        case CommandRequest(kept=kept) if kept:
            return kept
        case CommandRequest(words=words):
            return words[0][:LONGEST_FIRST_WORD].encode(errors="replace").decode() if words else "shell"
        case ConnectionRequest(host=host, port=port):
            return f"{host}:{port}"
        case FilesRequest():
            return ""


def _target(place: AttachPlace, request: AttachmentRequest) -> str:
    """What the audit log says of an attachment: of a command its first word alone, as the others may be secrets."""
    words = (
        f" and {len(request.words) - 1} words" if isinstance(request, CommandRequest) and len(request.words) > 1 else ""
    )
    return f"{place.job} rank {place.rank} {request.kind} {_about(request)}{words}".rstrip()


def _order(held: _Open, place: AttachPlace, request: AttachmentRequest, address: str, ticket: str) -> AttachmentOrder:
    return AttachmentOrder(
        attachment=held.opened.attachment,
        execution=place.execution,
        request=request,
        relay=address,
        ticket=ticket,
        resume_within=held.resume_within,
        who=held.who.name,
    )


def _pass(held: _Open, address: str, ticket: str) -> AttachmentPass:
    return AttachmentPass(
        attachment=held.opened.attachment,
        job=held.opened.job,
        rank=held.opened.rank,
        relay=address,
        ticket=ticket,
        resume_within=held.resume_within,
    )


def _ticket(relay: RelaySide, held: _Open, side: TicketSide, now: datetime) -> str:
    opened = held.opened
    return relay.ticket(opened.attachment, side, account=opened.account, node=opened.node, now=now)
