"""Operations on attachments: who may attach to which running execution; the bytes go through the relay."""

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from coordinator.clock import boot_time, wall_time
from coordinator.core.cluster.cluster import Cluster
from coordinator.engine.engine import Engine, Freshness
from coordinator.service.attaching.held import HeldAttachment, about, said_of
from coordinator.service.attaching.idle_notices import IdleNotices
from coordinator.service.attaching.lines import AgentLines
from coordinator.service.attaching.open_book import AttachmentBook
from coordinator.service.attaching.place import AttachPlace, attach_place, served_place
from coordinator.service.attaching.relay_side import RelaySide
from coordinator.service.attaching.rights import COUNTS_NO_MORE, AttachRights
from coordinator.service.finding import resolved
from coordinator.service.operations import Operation, Operations
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.caller import Caller
from muster.domain.attachments.request import (
    AttachmentKind,
    AttachmentOrder,
    AttachmentPass,
    AttachmentReport,
    AttachmentRequest,
    OpenedAttachment,
    ServedAttachment,
)
from muster.domain.errors import PermissionDeniedError, UnavailableError, UnknownNameError
from muster.domain.fleet.access import Access, AuditEntry
from muster.domain.ids import JobId, NodeId
from muster.trust.tickets import TicketSide

ATTACHMENT_ID_BYTES = 6
RESUME_WITHIN = timedelta(minutes=10)
"""The time for which either side of a terminal or a connection may be away."""
FILES_RESUME_WITHIN = timedelta(seconds=60)
"""The same for files: what was copied can be copied again."""
TIDIED_EVERY = 60.0
"""Seconds between two looks for what has been left behind."""
PATIENCE = timedelta(minutes=2)
"""The time beyond RESUME_WITHIN for which an attachment without a stream may still be reported about."""
DESERTED = "both sides were away for too long"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachWays:
    """How the two sides of an attachment are brought together."""

    relay: RelaySide | None
    """None: there is no relay, and nobody can attach."""
    lines: AgentLines


class AttachmentOperations:
    """What callers may do with attachments."""

    def __init__(
        self,
        operations: Operations,
        engine: Engine,
        audit: AuditLog,
        rights: AttachRights,
        book: AttachmentBook,
        reached: AttachWays,
    ) -> None:
        self._operations = operations
        self._engine = engine
        self._audit = audit
        self._rights = rights
        self._book = book
        self._relay = reached.relay
        self._lines = reached.lines
        self.notices = IdleNotices(engine, book, reached.lines)
        """What those who are attached are told of jobs that nobody uses."""

    async def open(self, caller: Caller, job: str, rank: int | None, request: AttachmentRequest) -> AttachmentPass:
        """Open an attachment to a running execution; without a rank to the lowest that runs."""
        async with self._operations.begin(caller, "attachments.open", job) as operation:

            def find(cluster: Cluster, now: datetime) -> AttachPlace:
                return attach_place(cluster, resolved(operation, cluster, job), rank, now)

            place = await self._engine.query(find, after=Freshness.COMMITTED)
            self._rights.require(caller, place, request.kind)
            relay, address = self._relay_there()
            now = wall_time()
            held = _held(caller, place, request, now)
            if refusal := self._book.refusal_for(held, boot_time()):
                raise refusal.error()
            self._note(self._book.add(held))
            self.notices.attached(place.job)
            relay.opened(held.attachment)
            try:
                await self._audit.kept()  # nobody attaches of whom no trace is left
                await self._lines.order(
                    place.node, _order(held, request, address, _ticket(relay, held, TicketSide.AGENT, now))
                )
            except BaseException:
                self._ended(_lost(held.attachment, "its agent was not told"))
                raise
            self._book.told(held.attachment)
            return _pass(held, address, _ticket(relay, held, TicketSide.CLIENT, now))

    async def again(self, caller: Caller, attachment: str) -> AttachmentPass:
        """Another ticket for an attachment that the caller has open."""
        async with self._operations.begin(caller, "attachments.open", attachment) as operation:
            held = self._seen(operation, attachment)
            if held.caller.name != caller.name:
                raise self._not_there(operation, attachment)
            relay, address = self._relay_there()
            return _pass(held, address, _ticket(relay, held, TicketSide.CLIENT, wall_time()))

    async def list(self, caller: Caller, job: str = "") -> Sequence[OpenedAttachment]:
        """Attachments that are open in projects that the caller may look at, the oldest first."""
        async with self._operations.begin(caller, "attachments.list", job) as operation:
            only: JobId | None = None
            if job:

                def find(cluster: Cluster, _: datetime) -> JobId:
                    return resolved(operation, cluster, job)

                only = await self._engine.query(find, after=Freshness.COMMITTED)
            return [
                self._with_traffic(held)
                for held in (self._book if only is None else self._book.of_job(only))
                if caller.may(Access.VIEWER, held.project)
            ]

    async def close(self, caller: Caller, attachment: str) -> None:
        """End an attachment: one of the caller, or any other for an operator of its project."""
        async with self._operations.begin(caller, "attachments.close", attachment) as operation:
            held = self._seen(operation, attachment)
            if held.caller.name != caller.name and not caller.may(Access.OPERATOR, held.project):
                raise PermissionDeniedError(
                    f"attachment {attachment} is of {held.caller.name}; ending it needs operator access to project "
                    f"{held.project}"
                )
            self._cut(attachment, f"{caller.name} has closed it")

    def reported(self, node: NodeId, report: AttachmentReport) -> None:
        """Take in how an attachment ended, from the agent of its node."""
        held = self._book.get(report.attachment)
        if held is not None and held.opened.node == node:
            self._ended(report)

    def taken_up(self, node: NodeId, served: Sequence[ServedAttachment]) -> None:
        """Take in what an agent serves as its stream begins: what is not known here was opened before a restart.

        What it does not serve has ended: its agent was restarted, or never heard of it.
        """
        for held in self._book.unserved(node, {each.attachment for each in served}):
            self._ended(_lost(held.attachment, f"the agent of {node} was restarted"))
        for each in served:
            if self._book.get(each.attachment) is None:
                self._adopt(node, each)
        if self._relay is not None:
            self._relay.came(node)

    def _adopt(self, node: NodeId, served: ServedAttachment) -> None:
        """Have an attachment of an earlier coordinator in the book, if it is of an execution on its node."""
        now = wall_time()

        def place(cluster: Cluster) -> AttachPlace | None:
            return served_place(cluster, served.execution, node)

        found = self._engine.query_now(place)
        caller = self._rights.holder_of(served.who, served.token, now)
        if found is None or caller is None:
            self._cut(served.attachment, COUNTS_NO_MORE if found else "its execution is not known", lost=found is None)
            return
        held = _held_again(caller, found, served)
        if refusal := self._rights.refusal_to_stay(held, now):
            self._cut(served.attachment, refusal)
            return
        self._book.add(held)  # the audit log has its beginning
        self._book.told(held.attachment)
        self.notices.attached(found.job)
        if self._relay is not None:
            self._relay.opened(served.attachment)

    def look_again(self) -> None:
        """End the attachments of those who may not attach any more, by the question that a new one is asked."""
        now = wall_time()
        for held in self._book:
            refusal = self._rights.refusal_to_stay(held, now)
            if refusal is not None:
                self._cut(held.attachment, refusal)

    async def tidy(self) -> None:
        """Tell the audit log of forwards that rest, and forget attachments that both sides left; until cancelled."""
        deserted: dict[str, datetime] = {}
        while True:
            await asyncio.sleep(TIDIED_EVERY)
            now = wall_time()
            self._note(self._book.settle(now))
            self.look_again()  # tokens may have come to their end
            deserted = {
                held.attachment: deserted.get(held.attachment, now) for held in self._book if self._is_deserted(held)
            }
            for attachment, since in deserted.items():
                if now - since > RESUME_WITHIN + PATIENCE:
                    self._ended(_lost(attachment, DESERTED))

    def close_all(self) -> None:
        """Tell the audit log of the forwards that go on, as the coordinator ends."""
        self._note(self._book.close(wall_time()))

    def _is_deserted(self, held: HeldAttachment) -> bool:
        traffic = None if self._relay is None else self._relay.traffic(held.attachment)
        return traffic is None or not (traffic.client or traffic.agent)

    def _with_traffic(self, held: HeldAttachment) -> OpenedAttachment:
        if self._relay is None:
            return held.opened
        traffic = self._relay.traffic(held.attachment)
        return replace(held.opened, bytes_in=traffic.bytes_in, bytes_out=traffic.bytes_out)

    def _ended(self, report: AttachmentReport) -> None:
        held = self._book.get(report.attachment)
        self._note(self._book.end(report, wall_time()))
        if held is not None:
            self.notices.left(held.opened.job)
        self._cut(report.attachment, report.text or "it has ended", lost=True)

    def _note(self, entries: Iterable[AuditEntry]) -> None:
        for entry in entries:
            self._audit.note(entry)

    def _relay_there(self) -> tuple[RelaySide, str]:
        """The relay and its address; raises UnavailableError where there is none now."""
        address = None if self._relay is None else self._relay.address
        if self._relay is None or address is None:
            raise UnavailableError("the relay, through which attachments go, is not there; is muster-relay running?")
        return self._relay, address

    def _cut(self, attachment: str, why: str, *, lost: bool = False) -> None:
        if self._relay is not None:
            self._relay.close(attachment, why, lost=lost)

    def _seen(self, operation: Operation, attachment: str) -> HeldAttachment:
        """An open attachment that the caller may know of; raises UnknownNameError for any other."""
        held = self._book.get(attachment)
        if held is None or not operation.caller.may(Access.VIEWER, held.project):
            raise self._not_there(operation, attachment)
        operation.require_access(held.project)
        return held

    def _not_there(self, operation: Operation, attachment: str) -> UnknownNameError:
        operation.unseen()
        return UnknownNameError(
            f"there is no attachment {attachment!r}; `muster attachments` lists those that are open"
        )


def _held(caller: Caller, place: AttachPlace, request: AttachmentRequest, now: datetime) -> HeldAttachment:
    opened = OpenedAttachment(
        attachment=secrets.token_hex(ATTACHMENT_ID_BYTES),
        job=place.job,
        job_name=place.job_name,
        rank=place.rank,
        node=place.node,
        account=caller.name,
        kind=request.kind,
        about=about(request),
        since=now,
        bytes_in=0,
        bytes_out=0,
    )
    return HeldAttachment(
        opened=opened,
        execution=place.execution,
        project=place.project,
        owner=place.owner,
        caller=caller,
        said=said_of(request),
    )


def _held_again(caller: Caller, place: AttachPlace, served: ServedAttachment) -> HeldAttachment:
    opened = OpenedAttachment(
        attachment=served.attachment,
        job=place.job,
        job_name=place.job_name,
        rank=place.rank,
        node=place.node,
        account=caller.name,
        kind=served.kind,
        about=served.about,
        since=served.since,
        bytes_in=0,
        bytes_out=0,
    )
    said = f"{served.kind} {served.about}".rstrip()
    return HeldAttachment(
        opened=opened, execution=place.execution, project=place.project, owner=place.owner, caller=caller, said=said
    )


def _lost(attachment: str, why: str) -> AttachmentReport:
    """What is taken for the word of an agent that will say none."""
    return AttachmentReport(attachment=attachment, code=255, text=why, bytes_in=0, bytes_out=0)


def _order(held: HeldAttachment, request: AttachmentRequest, address: str, ticket: str) -> AttachmentOrder:
    return AttachmentOrder(
        attachment=held.attachment,
        execution=held.execution,
        request=request,
        relay=address,
        ticket=ticket,
        resume_within=_resume_within(held),
        who=held.caller.name,
        token=held.caller.token,
        since=held.opened.since,
        about=held.opened.about,
    )


def _pass(held: HeldAttachment, address: str, ticket: str) -> AttachmentPass:
    return AttachmentPass(
        attachment=held.attachment,
        job=held.opened.job,
        rank=held.opened.rank,
        relay=address,
        ticket=ticket,
        resume_within=_resume_within(held),
    )


def _resume_within(held: HeldAttachment) -> timedelta:
    return FILES_RESUME_WITHIN if held.opened.kind is AttachmentKind.FILES else RESUME_WITHIN


def _ticket(relay: RelaySide, held: HeldAttachment, side: TicketSide, now: datetime) -> str:
    opened = held.opened
    return relay.ticket(opened.attachment, side, account=opened.account, node=opened.node, now=now)
