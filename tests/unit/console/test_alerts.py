"""Alerts begin with what stays, end with what stays away, and are shown to whom they concern."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from console.alerts.alert import Alert, AlertKind, AlertSign
from console.alerts.alert_book import AlertBook
from console.alerts.signs import OF_MIRROR, coordinator_away, signs_of
from console.mirror.mirror import Mirror
from console.telemetry.gangs.gang_watch import JobDifference
from muster.domain.fleet.access import EVERYWHERE, Access
from muster.domain.fleet.node import Cordon, NodeState
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.notifications.event_types import EventSeverity
from muster.domain.notifications.happening import ToldJob
from muster.domain.telemetry.differences import DifferenceKind
from tests.unit.console.mirrored import NOW, ToldFeed, a_job, a_line, a_node

ROOT: Mapping[str, Access] = {EVERYWHERE: Access.ADMIN}
TOLD = ToldJob(id=JobId("a"), name="train", project="red", owner="ada")
DIFFERS = JobDifference(
    attempt=0,
    rank=3,
    node=NodeId("n"),
    kind=DifferenceKind.METRIC,
    what="loss",
    since=NOW,
    until=None,
    text="its loss left the band",
)


def a_sign(kind: AlertKind = AlertKind.GPU_BROKEN, project: str = "", access: Access = Access.VIEWER) -> AlertSign:
    return AlertSign(
        kind=kind,
        severity=EventSeverity.WARNING,
        subject="nodes/n",
        text="look",
        since=NOW,
        project=project,
        access=access,
    )


def seconds(number: float) -> datetime:
    return NOW + timedelta(seconds=number)


def shown(alerts: list[Alert] | None) -> list[tuple[AlertKind, datetime | None]]:
    return [(each.kind, each.until) for each in alerts or ()]


def test_an_alert_of_what_counts_at_once_begins_and_ends_with_it() -> None:
    book = AlertBook()
    book.note(seconds(0), [a_sign()])
    begun = book.alerts(ROOT)
    book.note(seconds(5), [a_sign()])
    book.note(seconds(10), [])
    assert (shown(begun), shown(book.alerts(ROOT))) == ([(AlertKind.GPU_BROKEN, None)], [])
    [ended] = book.alerts(ROOT, ended=True)
    assert (ended.id, ended.until) == (begun[0].id, seconds(5))


def test_a_node_that_is_back_soon_is_no_alert() -> None:
    book, sign = AlertBook(), a_sign(AlertKind.NODE_UNREACHABLE)
    book.note(seconds(0), [sign])
    book.note(seconds(30), [])
    book.note(seconds(100), [])
    assert book.alerts(ROOT, ended=True) == []


def test_a_node_that_comes_and_goes_is_one_alert() -> None:
    book, sign = AlertBook(), a_sign(AlertKind.NODE_UNREACHABLE)
    for at, signs in ((0, [sign]), (70, [sign]), (90, []), (100, [sign])):
        book.note(seconds(at), signs)
    during = shown(book.alerts(ROOT))
    book.note(seconds(110), [])
    book.note(seconds(160), [])
    assert during == [(AlertKind.NODE_UNREACHABLE, None)]
    assert shown(book.alerts(ROOT, ended=True)) == [(AlertKind.NODE_UNREACHABLE, seconds(100))]


def test_an_alert_that_is_graver_than_before_is_told_again_under_its_id() -> None:
    book = AlertBook()
    book.note(seconds(0), [a_sign()])
    [first] = book.since(-1, ROOT) or []
    known = book.newest
    book.note(seconds(5), [a_sign()])
    nothing = book.since(known, ROOT)
    book.note(seconds(10), [replace(a_sign(), severity=EventSeverity.CRITICAL, since=seconds(10))])
    [graver] = book.since(known, ROOT) or []
    assert nothing is None
    assert (graver.id, graver.since, graver.severity) == (first.id, NOW, EventSeverity.CRITICAL)


def test_without_a_mirror_alerts_stay_as_they_are_and_the_coordinator_is_one() -> None:
    book = AlertBook()
    book.note(seconds(0), [a_sign()])
    for at in (10, 50):
        book.note(seconds(at), [coordinator_away(seconds(at))], OF_MIRROR)
    away = {each.kind for each in book.alerts(ROOT)}
    for at in (60, 100):
        book.note(seconds(at), [a_sign()])
    assert away == {AlertKind.GPU_BROKEN, AlertKind.COORDINATOR_AWAY}
    assert {each.kind for each in book.alerts(ROOT)} == {AlertKind.GPU_BROKEN}


def test_of_those_that_have_ended_the_newest_are_kept() -> None:
    book = AlertBook(ended_kept=2)
    for number in range(4):
        book.note(seconds(number), [replace(a_sign(), subject=f"nodes/{number}", since=seconds(number))])
    book.note(seconds(9), [])
    assert [each.subject for each in book.alerts(ROOT, ended=True)] == ["nodes/3", "nodes/2"]
    assert [each.subject for each in book.since(0, ROOT) or ()] == ["nodes/2", "nodes/3"]


@pytest.mark.parametrize(
    ("sign", "grants", "sees"),
    [
        (a_sign(), {}, False),
        (a_sign(), {"blue": Access.VIEWER}, True),
        (a_sign(project="red"), {"blue": Access.ADMIN}, False),
        (a_sign(project="red"), {"red": Access.VIEWER}, True),
        (a_sign(project="red"), {EVERYWHERE: Access.VIEWER}, True),
        (a_sign(project="red", access=Access.MEMBER), {"red": Access.VIEWER}, False),
        (a_sign(project=EVERYWHERE, access=Access.OPERATOR), {"red": Access.ADMIN}, False),
        (a_sign(project=EVERYWHERE, access=Access.OPERATOR), {EVERYWHERE: Access.OPERATOR}, True),
    ],
)
def test_an_alert_is_shown_to_whom_it_concerns(sign: AlertSign, grants: Mapping[str, Access], sees: bool) -> None:
    book = AlertBook()
    book.note(seconds(0), [sign])
    assert bool(book.alerts(grants)) is bool(book.since(-1, grants)) is bool(book.since(0, grants)) is sees


def test_signs_are_read_from_nodes_the_queue_and_gangs() -> None:
    feed, mirror = ToldFeed(), Mirror()
    cordoned = replace(a_node("c", NodeState.LOST), cordon=Cordon(since=NOW))
    old, new = a_line("q"), replace(a_line("r", position=2), pool="slow", since=NOW + timedelta(minutes=59))
    running = a_job("a", phase=JobPhase.RUNNING)
    nodes = (a_node("good"), a_node("away", NodeState.UNREACHABLE), a_node("lost", NodeState.LOST), cordoned)
    mirror.apply(feed.tell(*nodes, running, queue=[old, new], anew=True))
    ended = replace(DIFFERS, until=NOW)
    signs = list(signs_of(mirror, [(TOLD, DIFFERS), (TOLD, ended)], NOW + timedelta(hours=1)))
    mirror.apply(feed.tell(a_job("a", phase=JobPhase.STOPPING)))
    later = list(signs_of(mirror, [(TOLD, DIFFERS)], NOW))
    assert [(each.subject, each.severity.value, each.project) for each in signs] == [
        ("nodes/away", "warning", ""),
        ("nodes/lost", "critical", ""),
        ("pools/fast", "info", ""),
        ("jobs/a", "warning", "red"),
    ]
    assert signs[-1].text == "rank 3 on n of train differs: its loss left the band"
    assert AlertKind.RANK_DIFFERS not in {each.kind for each in later}
