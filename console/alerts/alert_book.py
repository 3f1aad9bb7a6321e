"""The book of alerts: signs that have stayed, until they have been away as long; what changes, in order; pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from console.alerts.alert import ALERT_AFTER, Alert, AlertKind, AlertSign, alert_of, may_see
from muster.domain.fleet.access import Access
from muster.domain.revisions import Revisions

ENDED_ALERTS_KEPT = 200
"""Newest alerts that have ended and are still told."""
_AT_ONCE = timedelta(0)

AlertKey = tuple[AlertKind, str, str]


@dataclass(frozen=True, slots=True)
class _Sight:
    """A sign that is there, or was a moment ago."""

    sign: AlertSign
    first: datetime
    last: datetime
    alerted: bool


class AlertBook:
    """All alerts that go on, and the last ones that have ended."""

    def __init__(self, ended_kept: int = ENDED_ALERTS_KEPT) -> None:
        self._ended_kept = ended_kept
        self._sights: dict[AlertKey, _Sight] = {}
        self._told: dict[str, tuple[AlertSign, Alert]] = {}
        """Alerts by id; those that have ended in the order of their ends."""
        self._changes: Revisions[str] = Revisions()

    @property
    def newest(self) -> int:
        """The number of the newest change."""
        return self._changes.newest

    def note(self, now: datetime, signs: Iterable[AlertSign], unknown: Collection[AlertKind] = ()) -> None:
        """Take in all signs that are there now; of `unknown` kinds nothing can be said, and they stay as they are."""
        there = {(each.kind, each.subject, each.what): each for each in signs}
        for key, sign in there.items():
            self._see(key, sign, now)
        for key in [key for key in self._sights if key not in there and key[0] not in unknown]:
            sight = self._sights[key]
            if now - sight.last >= ALERT_AFTER.get(key[0], _AT_ONCE):
                del self._sights[key]
                if sight.alerted:
                    self._end(sight)

    def alerts(self, grants: Mapping[str, Access], *, ended: bool = False) -> list[Alert]:
        """What somebody may see, the newest first: what goes on, or also what has ended."""
        seen = [alert for sign, alert in self._told.values() if may_see(sign, grants)]
        wanted = [alert for alert in seen if ended or alert.until is None]
        return sorted(wanted, key=lambda alert: (alert.since, alert.id), reverse=True)

    def since(self, known: int, grants: Mapping[str, Access]) -> list[Alert] | None:
        """What somebody who has read up to a number has not; -1: all that goes on. None: nothing is new."""
        if known < 0:
            return self.alerts(grants)
        changed = [each.key for each in self._changes.since(known) if each.there]
        found = [self._told[key][1] for key in changed if may_see(self._told[key][0], grants)]
        return found or None

    def _see(self, key: AlertKey, sign: AlertSign, now: datetime) -> None:
        before = self._sights.get(key)
        first = now if before is None else before.first
        if before is not None:
            sign = replace(sign, since=before.sign.since)
        alerted = now - first >= ALERT_AFTER.get(key[0], _AT_ONCE)
        if alerted and (before is None or not before.alerted or before.sign != sign):
            self._tell(sign, alert_of(sign))
        self._sights[key] = _Sight(sign, first, now, alerted)

    def _end(self, sight: _Sight) -> None:
        alert = alert_of(sight.sign, sight.last)
        self._told.pop(alert.id, None)
        self._tell(sight.sign, alert)
        ended = [key for key, (_, each) in self._told.items() if each.until is not None]
        for key in ended[: max(0, len(ended) - self._ended_kept)]:
            del self._told[key]
            self._changes.note_gone(key)

    def _tell(self, sign: AlertSign, alert: Alert) -> None:
        self._told[alert.id] = sign, alert
        self._changes.note(alert.id, sign.project)
