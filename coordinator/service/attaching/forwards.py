"""Connections to one address of one rank are one forward, which the audit log has once, with its sum at the end."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from coordinator.service.attaching.entries import beginning, forward_end
from coordinator.service.attaching.held import HeldAttachment
from muster.domain.attachments.request import AttachmentReport
from muster.domain.fleet.access import AuditEntry
from muster.domain.ids import JobId

FORWARD_REST = timedelta(minutes=10)
"""How long a forward without a connection goes on: browsers open one for each page."""
FORWARDS_EACH = 32
"""Forwards of one account to one rank that are told one by one; connections to more addresses are told as one."""
ELSEWHERE = "other addresses"
"""Where connections lead that are told as one."""

_Place = tuple[str, JobId, int]


class ForwardKey(NamedTuple):
    """What the connections of one forward have in common."""

    account: str
    job: JobId
    rank: int
    address: str


@dataclass(slots=True)
class _Forward:
    """A forward while it goes on."""

    first: HeldAttachment
    connections: int = 0
    """All that there were."""
    open: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    rests_since: datetime | None = None
    """None: a connection is open."""


class Forwards:
    """The forwards that go on, each with the sum of its connections."""

    def __init__(self) -> None:
        self._forwards: dict[ForwardKey, _Forward] = {}
        self._of_connection: dict[str, ForwardKey] = {}
        """Forwards by connections that are open."""
        self._at: Counter[_Place] = Counter()
        """How many forwards each account has to each rank."""

    def __len__(self) -> int:
        return len(self._forwards)

    def add(self, held: HeldAttachment) -> tuple[AuditEntry, ...]:
        """Count a connection; the entry for the first one of a forward."""
        key = self._key(held)
        self._of_connection[held.attachment] = key
        forward = self._forwards.get(key)
        is_new = forward is None
        if forward is None:
            forward = self._forwards[key] = _Forward(held)
            self._at[key[:3]] += 1
        forward.connections += 1
        forward.open += 1
        forward.rests_since = None
        return (beginning(held, _said(key)),) if is_new else ()

    def end(self, report: AttachmentReport, now: datetime) -> None:
        """Hear that a connection has ended, with the bytes that it has moved."""
        key = self._of_connection.pop(report.attachment, None)
        if key is None:
            return  # its forward was told when all were closed
        forward = self._forwards[key]
        forward.open -= 1
        forward.bytes_in += report.bytes_in
        forward.bytes_out += report.bytes_out
        if not forward.open:
            forward.rests_since = now

    def settle(self, now: datetime) -> tuple[AuditEntry, ...]:
        """End the forwards that have had no connection for long; an entry with the sum of each."""
        resting = [(key, each.rests_since) for key, each in self._forwards.items() if each.rests_since is not None]
        return tuple(self._close(key, since) for key, since in resting if since + FORWARD_REST <= now)

    def close(self, now: datetime) -> tuple[AuditEntry, ...]:
        """End all forwards, as the coordinator ends; an entry with the sum of each, as far as it is known."""
        entries = tuple(self._close(key, each.rests_since or now) for key, each in list(self._forwards.items()))
        self._of_connection.clear()
        return entries

    def _key(self, held: HeldAttachment) -> ForwardKey:
        opened = held.opened
        key = ForwardKey(opened.account, opened.job, opened.rank, opened.about)
        is_one_too_many = key not in self._forwards and self._at[key[:3]] >= FORWARDS_EACH
        return key._replace(address=ELSEWHERE) if is_one_too_many else key

    def _close(self, key: ForwardKey, at: datetime) -> AuditEntry:
        forward = self._forwards.pop(key)
        self._at[key[:3]] -= 1
        if not self._at[key[:3]]:
            del self._at[key[:3]]
        return forward_end(forward.first, _said(key), forward.connections, (forward.bytes_in, forward.bytes_out), at)


def _said(key: ForwardKey) -> str:
    return f"forward {key.address}"
