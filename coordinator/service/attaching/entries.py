"""Entries of the audit log about attachments: when one begins, and when it has ended."""

from datetime import datetime, timedelta

from coordinator.service.attaching.held import HeldAttachment
from muster.domain.attachments.request import AttachmentKind, AttachmentReport
from muster.domain.fleet.access import AuditEntry
from muster.domain.quantity import counted

ATTACHMENT_OPENED = "attachments.open"
"""The operation of an entry about the beginning."""
ATTACHMENT_ENDED = "attachments.end"
"""The operation of an entry about the end, which needs no call."""


def beginning(held: HeldAttachment, said: str) -> AuditEntry:
    """Somebody attaches; `said` is what to."""
    return _entry(held, ATTACHMENT_OPENED, held.opened.since, _place(held, said))


def end(held: HeldAttachment, report: AttachmentReport, now: datetime) -> AuditEntry:
    """An attachment has ended, as its agent tells."""
    what = f"{_place(held, held.said)}, {_sums(now - held.opened.since, report.bytes_in, report.bytes_out)}"
    if report.text:
        what = f"{what}, {report.text}"
    elif held.opened.kind is AttachmentKind.COMMAND:
        what = f"{what}, exit code {report.code}"
    return _entry(held, ATTACHMENT_ENDED, now, what)


def forward_end(
    first: HeldAttachment, said: str, connections: int, moved: tuple[int, int], now: datetime
) -> AuditEntry:
    """A forward has ended whose first connection this was, with the bytes that all have moved in and out."""
    sums = _sums(now - first.opened.since, *moved)
    return _entry(first, ATTACHMENT_ENDED, now, f"{_place(first, said)}, {counted(connections, 'connection')}, {sums}")


def _place(held: HeldAttachment, said: str) -> str:
    return f"ok, rank {held.opened.rank} on {held.opened.node}, {said}"


def _sums(span: timedelta, bytes_in: int, bytes_out: int) -> str:
    seconds = max(0.0, span.total_seconds())
    return f"{seconds:.0f} s, {counted(bytes_in, 'byte')} in, {counted(bytes_out, 'byte')} out"


def _entry(held: HeldAttachment, what: str, at: datetime, result: str) -> AuditEntry:
    caller = held.caller
    return AuditEntry(at=at, who=caller.name, what=what, target=held.opened.job, origin=caller.origin, result=result)
