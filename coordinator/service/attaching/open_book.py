"""The book of attachments that are open: by name, execution, job, node and account, with what the limits leave."""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from enum import Enum, auto

from coordinator.service.attaching import entries
from coordinator.service.attaching.attachment_limits import (
    AttachmentLimits,
    LimitRefusal,
    account_is_full,
    execution_is_full,
    opened_too_fast,
)
from coordinator.service.attaching.forwards import Forwards
from coordinator.service.attaching.held import HeldAttachment
from coordinator.trust.caller import CallerKind
from muster.daemon.rates import Buckets
from muster.domain.attachments.request import AttachmentReport
from muster.domain.fleet.access import AuditEntry
from muster.domain.ids import ExecutionId, JobId, NodeId


class _By(Enum):
    EXECUTION = auto()
    ACCOUNT = auto()
    JOB = auto()
    NODE = auto()
    SORT_OF_EXECUTION = auto()
    """Connections of an execution, or its other attachments."""
    SORT_OF_ACCOUNT = auto()


_Key = tuple[_By, str, bool]
_Group = dict[str, HeldAttachment]


class AttachmentBook:
    """The attachments that are open, the oldest first, and the entries of the audit log that follow from them.

    Whoever opens one asks `refusal_for` and calls `add` without waiting in between.
    """

    def __init__(self, limits: AttachmentLimits | None = None) -> None:
        self._limits = limits or AttachmentLimits()
        self._pace = Buckets[str](self._limits.opened)
        self._all: _Group = {}
        self._groups: dict[_Key, _Group] = {}
        """Attachments by all that they are asked for; none is empty."""
        self._heard_of: set[str] = set()
        """Attachments of which their agents have heard."""
        self._forwards = Forwards()

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[HeldAttachment]:
        """All of them, the oldest first; not to be used across an `add` or `end`."""
        return iter(self._all.values())

    def get(self, attachment: str) -> HeldAttachment | None:
        """The attachment of that name, while it is open."""
        return self._all.get(attachment)

    def of_execution(self, execution: ExecutionId) -> Sequence[HeldAttachment]:
        """The attachments of an execution."""
        return self._of(_By.EXECUTION, execution)

    def of_account(self, account: str) -> Sequence[HeldAttachment]:
        """The attachments of an account."""
        return self._of(_By.ACCOUNT, account)

    def of_job(self, job: JobId) -> Sequence[HeldAttachment]:
        """The attachments of all executions of a job."""
        return self._of(_By.JOB, job)

    def of_node(self, node: NodeId) -> Sequence[HeldAttachment]:
        """The attachments of all executions on a node."""
        return self._of(_By.NODE, node)

    def refusal_for(self, new: HeldAttachment, now: float) -> LimitRefusal | None:
        """Why there may not be this one more; None: it may be added, and its account has opened one.

        `now` is in seconds of a clock that nobody sets, or an account would wait for as long as it was set back.
        """
        there = self._of(_By.SORT_OF_EXECUTION, new.execution, is_connection=new.is_connection)
        if len(there) >= self._limits.of_execution(new):
            return execution_is_full(new, there)
        there = self._of(_By.SORT_OF_ACCOUNT, new.opened.account, is_connection=new.is_connection)
        if len(there) >= self._limits.of_account(new):
            return account_is_full(new, there)
        if new.caller.kind is CallerKind.LOCAL:  # the user of `muster up` has the machine alone
            return None
        wait = self._pace.take(new.opened.account, now)
        return opened_too_fast(new, wait) if wait else None

    def add(self, new: HeldAttachment) -> tuple[AuditEntry, ...]:
        """Note that an attachment is open; the entry that says so, which only the first connection of a forward has."""
        if new.attachment in self._all:
            return ()
        self._all[new.attachment] = new
        for key in _keys(new):
            self._groups.setdefault(key, {})[new.attachment] = new
        return self._forwards.add(new) if new.is_connection else (entries.beginning(new, new.said),)

    def told(self, attachment: str) -> None:
        """Note that the agent of an attachment has heard of it on the stream that it has now."""
        if attachment in self._all:
            self._heard_of.add(attachment)

    def unserved(self, node: NodeId, served: Collection[str]) -> Sequence[HeldAttachment]:
        """The attachments of which a node had heard before its new stream, and that it does not serve.

        One of which it has not heard yet is opened just now; its order goes to the new stream.
        """
        return tuple(
            held for held in self.of_node(node) if held.attachment in self._heard_of and held.attachment not in served
        )

    def end(self, report: AttachmentReport, now: datetime) -> tuple[AuditEntry, ...]:
        """Note that an attachment has ended; the entry that says so, which a connection of a forward does not have."""
        held = self._all.pop(report.attachment, None)
        if held is None:
            return ()
        self._heard_of.discard(held.attachment)
        for key in _keys(held):
            group = self._groups[key]
            del group[held.attachment]
            if not group:
                del self._groups[key]
        if held.is_connection:
            self._forwards.end(report, now)
            return ()
        return (entries.end(held, report, now),)

    def settle(self, now: datetime) -> tuple[AuditEntry, ...]:
        """Entries with the sums of forwards that have had no connection for long; to be asked for every minute."""
        return self._forwards.settle(now)

    def close(self, now: datetime) -> tuple[AuditEntry, ...]:
        """Entries with the sums of all forwards; the last question, as the coordinator ends."""
        return self._forwards.close(now)

    def _of(self, by: _By, name: str, *, is_connection: bool = False) -> Sequence[HeldAttachment]:
        return tuple(self._groups.get((by, name, is_connection), {}).values())


def _keys(held: HeldAttachment) -> tuple[_Key, ...]:
    opened = held.opened
    return (
        (_By.EXECUTION, held.execution, False),
        (_By.ACCOUNT, opened.account, False),
        (_By.JOB, opened.job, False),
        (_By.NODE, opened.node, False),
        (_By.SORT_OF_EXECUTION, held.execution, held.is_connection),
        (_By.SORT_OF_ACCOUNT, opened.account, held.is_connection),
    )
