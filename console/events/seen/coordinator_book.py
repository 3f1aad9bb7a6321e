"""Whether the coordinator is heard: away for long enough is an event, and so is that it is back; pure."""

from datetime import datetime, timedelta

from muster.domain.event import FleetEvent, FleetEventKind
from muster.domain.quantity import format_duration

COORDINATOR_AWAY_AFTER = 45.0
"""Seconds without a word of the coordinator after which it is told to be away; a restart takes less."""


class CoordinatorBook:
    """Since when the coordinator is not heard, and whether that was told."""

    def __init__(self) -> None:
        self._heard_at: datetime | None = None
        self._is_told = False

    def note(self, now: datetime, *, heard: bool) -> FleetEvent | None:
        """Take in whether it is heard now; the event, if that is news. Before it was heard once nothing is."""
        if heard:
            back = self._back(now) if self._is_told else None
            self._heard_at, self._is_told = now, False
            return back
        if self._heard_at is None or self._is_told or now - self._heard_at < timedelta(seconds=COORDINATOR_AWAY_AFTER):
            return None
        self._is_told = True
        return FleetEvent(
            kind=FleetEventKind.COORDINATOR_AWAY,
            at=now,
            text=f"the console has not heard it for {_text(now - self._heard_at)}",
        )

    def _back(self, now: datetime) -> FleetEvent | None:
        if self._heard_at is None:
            return None
        text = f"the console had not heard it for {_text(now - self._heard_at)}"
        return FleetEvent(kind=FleetEventKind.COORDINATOR_BACK, at=now, text=text)


def _text(span: timedelta) -> str:
    """A span in whole seconds."""
    return format_duration(timedelta(seconds=round(span.total_seconds())))
