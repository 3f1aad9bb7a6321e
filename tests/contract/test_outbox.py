"""The outbox of deliveries on the disk: nothing is lost, nothing is there twice, and it stays small."""

from pathlib import Path

import pytest

from console.events.outbox import LOG_KEPT, Delivery, DeliveryOutcome, EventOutbox, NewDelivery
from muster.domain.errors import MusterError
from muster.domain.notifications.happening import EventPlace

NOW = 1_000.0


def new(event: str, subject: str = "jobs/a", subscription: str = "pager") -> NewDelivery:
    return NewDelivery(subscription=subscription, event=event, subject=subject, body=event.encode())


def outcome(delivery: Delivery, *, well: bool = True) -> DeliveryOutcome:
    return DeliveryOutcome(subscription=delivery.subscription, event=delivery.event, at=NOW, well=well, told="200")


def due(outbox: EventOutbox, subscription: str = "pager") -> Delivery:
    found = outbox.first_due(subscription)
    assert found is not None
    return found


def test_what_was_taken_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    outbox = EventOutbox(tmp_path / "outbox.db")
    assert outbox.place() is None
    outbox.take([new("e1"), new("e2", subject="jobs/b")], EventPlace(7, 3), NOW)
    outbox.close()

    again = EventOutbox(tmp_path / "outbox.db")
    assert again.place() == EventPlace(7, 3)
    assert (due(again).event, due(again).body, due(again).tries) == ("e1", b"e1", 0)
    again.close()


def test_an_event_that_is_told_twice_waits_once(tmp_path: Path) -> None:
    outbox = EventOutbox(tmp_path / "outbox.db")
    outbox.take([new("e1")], EventPlace(1, 0), NOW)
    outbox.take([new("e1"), new("e1", subscription="chat")], EventPlace(1, 0), NOW)
    assert (outbox.waiting("pager"), outbox.waiting("chat")) == (1, 1)
    outbox.close()


def test_events_of_one_subject_go_in_order_and_others_pass(tmp_path: Path) -> None:
    outbox = EventOutbox(tmp_path / "outbox.db")
    outbox.take([new("a1"), new("a2"), new("b1", subject="jobs/b")], EventPlace(3, 0), NOW)

    first = due(outbox)
    outbox.tried(first, outcome(first, well=False), NOW + 60)
    second = due(outbox)
    outbox.tried(second, outcome(second), None)
    third = due(outbox)
    outbox.tried(third, outcome(third), None)

    assert [each.event for each in (first, second, third, due(outbox))] == ["a1", "b1", "a1", "a2"]
    assert (third.tries, third.due) == (1, NOW + 60)
    outbox.close()


def test_of_too_many_the_oldest_go(tmp_path: Path) -> None:
    outbox = EventOutbox(tmp_path / "outbox.db", most=3)
    assert outbox.take([new(f"e{number}") for number in range(5)], EventPlace(5, 0), NOW) == 2
    assert (outbox.waiting("pager"), due(outbox).event) == (3, "e2")
    outbox.close()


def test_outcomes_are_kept_newest_first_and_not_for_ever(tmp_path: Path) -> None:
    outbox = EventOutbox(tmp_path / "outbox.db")
    for number in range(LOG_KEPT + 5):
        outbox.take([new(f"e{number}")], EventPlace(number, 0), NOW)
        outbox.tried(due(outbox), outcome(due(outbox)), None)
    kept = outbox.outcomes("pager", LOG_KEPT * 2)
    assert (len(kept), kept[0].event, kept[-1].event) == (LOG_KEPT, f"e{LOG_KEPT + 4}", "e5")
    outbox.close()


def test_subscriptions_that_are_gone_have_nothing_left(tmp_path: Path) -> None:
    outbox = EventOutbox(tmp_path / "outbox.db")
    outbox.take([new("e1"), new("e1", subscription="chat")], EventPlace(1, 0), NOW)
    outbox.forget_others(["chat"])
    assert (outbox.waiting("pager"), outbox.waiting("chat")) == (0, 1)
    outbox.close()


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "outbox.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(MusterError, match="cannot keep deliveries in"):
        EventOutbox(tmp_path / "outbox.db")
