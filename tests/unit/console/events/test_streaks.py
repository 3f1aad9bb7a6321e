"""Tries that fail in a row: who is told of them, and when nothing more is sent."""

from datetime import UTC, datetime, timedelta

import pytest

from console.alerts.alert import AlertKind
from console.events.failing.streaks import (
    SUSPENDED_AFTER,
    SUSPENDED_AFTER_TRIES,
    DeliveryStreaks,
    Streak,
)
from console.events.failing.told import delivery_signs, failing_event
from muster.domain.fleet.access import EVERYWHERE, Access
from muster.domain.notifications.subscription import FAILING_DELIVERIES

DAYS = SUSPENDED_AFTER.total_seconds()
NOW = datetime(2026, 11, 27, 9, tzinfo=UTC)


def failed(tries: int, lasted: float, *, name: str = "pager", suspends: bool = True) -> DeliveryStreaks:
    """Streaks after so many tries of a subscription, the first one at 0 and the last one `lasted` seconds later."""
    streaks = DeliveryStreaks()
    for number in range(tries):
        at = 0.0 if number == 0 else lasted
        streaks.note(name, at, "500 Oh", taken=False, suspends=suspends)
    return streaks


@pytest.mark.parametrize(
    ("tries", "lasted", "suspends", "suspended"),
    [
        (SUSPENDED_AFTER_TRIES, DAYS, True, True),
        (SUSPENDED_AFTER_TRIES - 1, DAYS, True, False),
        (SUSPENDED_AFTER_TRIES, DAYS - 1, True, False),
        (SUSPENDED_AFTER_TRIES, DAYS, False, False),
    ],
)
def test_a_subscription_is_suspended_after_many_tries_over_a_long_time(
    tries: int, lasted: float, suspends: bool, suspended: bool
) -> None:
    assert failed(tries, lasted, suspends=suspends).is_suspended("pager") is suspended


def test_one_try_that_was_taken_ends_a_streak() -> None:
    streaks = failed(SUSPENDED_AFTER_TRIES - 1, DAYS)
    assert streaks.note("pager", DAYS, "204", taken=True, suspends=True) is None
    after = streaks.note("pager", DAYS + 1, "500", taken=False, suspends=True)
    assert after == Streak(failures=1, since=DAYS + 1, told="500")


def test_after_a_start_a_suspended_subscription_has_one_more_try() -> None:
    streaks, again = failed(SUSPENDED_AFTER_TRIES, DAYS), DeliveryStreaks()
    again.load(streaks.current)
    tried = again.is_suspended("pager")
    again.note("pager", DAYS + 5, "500", taken=False, suspends=True)
    assert (tried, again.is_suspended("pager")) == (False, True)


@pytest.mark.parametrize(
    ("name", "project", "access"),
    [
        ("pager", EVERYWHERE, Access.OPERATOR),
        ("vision/pager", "vision", Access.MEMBER),
        ("*/pager", EVERYWHERE, Access.OPERATOR),
    ],
)
def test_a_target_that_fails_is_an_alert_for_those_who_may_list_its_subscription(
    name: str, project: str, access: Access
) -> None:
    none = list(delivery_signs(failed(FAILING_DELIVERIES - 1, 60, name=name)))
    [waits] = delivery_signs(failed(FAILING_DELIVERIES, 60, name=name))
    [suspended] = delivery_signs(failed(SUSPENDED_AFTER_TRIES, DAYS, name=name))
    assert none == []
    assert (waits.kind, waits.project, waits.access, waits.severity) == (
        AlertKind.DELIVERIES_FAIL,
        project,
        access,
        "warning",
    )
    assert waits.text == "subscription pager waits, as its target takes no events: 500 Oh"
    assert suspended.text == "subscription pager is suspended, as its target takes no events: 500 Oh"
    assert (suspended.since, suspended.severity) == (waits.since, "critical")


@pytest.mark.parametrize(
    ("name", "failures", "told"),
    [
        ("pager", FAILING_DELIVERIES, "target of a subscription takes no events: pager: 500 Oh"),
        ("pager", FAILING_DELIVERIES + 1, None),
        ("vision/pager", FAILING_DELIVERIES, None),
    ],
)
def test_a_target_of_the_file_that_begins_to_fail_is_an_event(name: str, failures: int, told: str | None) -> None:
    event = failing_event(name, Streak(failures=failures, since=0.0, told="500 Oh"), NOW + timedelta(minutes=3))
    assert (None if event is None else event.sentence) == told
