"""What is told of targets that take no events: an alert for as long as it lasts, and an event once; pure."""

from collections.abc import Iterator
from datetime import UTC, datetime

from console.alerts.alert import AlertKind, AlertSign
from console.events.failing.streaks import DeliveryStreaks, Streak
from console.events.subscription import key_of
from muster.domain.event import FleetEvent, FleetEventKind
from muster.domain.fleet.access import EVERYWHERE, Access
from muster.domain.notifications.event_types import EventSeverity
from muster.domain.notifications.subscription import FAILING_DELIVERIES


def delivery_signs(streaks: DeliveryStreaks) -> Iterator[AlertSign]:
    """A sign for each target that fails, for those who may list its subscription."""
    for name, streak in streaks.current.items():
        if not streak.failing:
            continue
        project, own = key_of(name) or (EVERYWHERE, name)
        what = "is suspended, as its target" if streak.suspended else "waits, as its target"
        yield AlertSign(
            kind=AlertKind.DELIVERIES_FAIL,
            severity=EventSeverity.CRITICAL if streak.suspended else EventSeverity.WARNING,
            subject=f"subscriptions/{name}",
            text=f"subscription {own} {what} takes no events: {streak.told}",
            since=datetime.fromtimestamp(streak.since, UTC),
            project=project,
            access=Access.OPERATOR if project == EVERYWHERE else Access.MEMBER,
        )


def failing_event(subscription: str, streak: Streak, now: datetime) -> FleetEvent | None:
    """The event of a target that begins to fail, of the console's file; the coordinator tells those of all others."""
    if streak.failures != FAILING_DELIVERIES or key_of(subscription) is not None:
        return None
    return FleetEvent(kind=FleetEventKind.DELIVERY_FAILING, at=now, text=f"{subscription}: {streak.told}")
