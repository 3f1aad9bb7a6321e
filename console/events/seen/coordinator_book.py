"""Whether the coordinator is heard: away for long enough is an event, and so is that it is back; pure."""

from datetime import datetime, timedelta

from muster.domain.event import FleetEvent, FleetEventKind
from muster.domain.quantity import format_duration

COORDINATOR_AWAY_AFTER = 45.0
"""Seconds without a mirror that is current after which the coordinator is told to be away; a restart takes less."""


class CoordinatorBook:
    """Since when the coordinator is not heard, and whether that was told."""

    def __init__(self) -> None:
        self._heard_at: datetime | None = None
        self._is_told = False

    def note(self, now: datetime, *, heard: bool) -> FleetEvent | None:
        """Take in whether it is heard now; the event, if that is news. Before it was heard once nothing is."""
        last, was_told = self._heard_at, self._is_told
        if heard:
            self._heard_at, self._is_told = now, False
        elif last is not None and now - last >= timedelta(seconds=COORDINATOR_AWAY_AFTER):
            self._is_told = True
        if last is None or self._is_told == was_told:
            return None
        kind, had = (
            (FleetEventKind.COORDINATOR_AWAY, "has") if self._is_told else (FleetEventKind.COORDINATOR_BACK, "had")
        )
        return FleetEvent(kind=kind, at=now, text=f"the console {had} not heard it for {_text(now - last)}")


def _text(span: timedelta) -> str:
    """A span in whole seconds."""
    return format_duration(timedelta(seconds=round(span.total_seconds())))
