"""What the console itself has seen goes the way of all events, to those who want it, and once."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from console.events.book import SubscriptionBook
from console.events.outbox import EventOutbox
from console.events.own_events import OWN_EVENTS_WAITING, OwnEvents
from console.events.subscription import EventSubscription, SlackTarget
from muster.domain.errors import MusterError
from muster.domain.event import JobEventKind
from muster.domain.notifications.happening import Happening
from tests.unit.console.events.told import of_job

SUBSCRIPTIONS = (
    EventSubscription(name="pager", target=SlackTarget(url="https://a"), events=("muster.job.rank_differs",)),
    EventSubscription(name="chat", target=SlackTarget(url="https://b"), events=("muster.node.*",)),
)


def book() -> SubscriptionBook:
    """The book of a console that follows no subscriptions beside its file."""
    found = SubscriptionBook(SUBSCRIPTIONS)
    found.follow(())
    return found


async def delivered(own: OwnEvents, outbox: EventOutbox, count: int) -> None:
    """Deliver until so many events are in the outbox."""
    told: asyncio.Queue[Sequence[Happening]] = asyncio.Queue()
    delivering = asyncio.create_task(own.deliver(outbox, book(), told.put_nowait))
    for _ in range(count):
        await told.get()
    delivering.cancel()
    await asyncio.wait([delivering])


async def test_an_event_goes_to_whoever_wants_it_and_once(tmp_path: Path) -> None:
    outbox, own = EventOutbox(tmp_path / "outbox.db"), OwnEvents()
    own.tell(of_job(JobEventKind.RANK_DIFFERS))
    own.tell(of_job(JobEventKind.RANK_DIFFERS))
    await delivered(own, outbox, 2)

    assert (outbox.waiting("pager"), outbox.waiting("chat")) == (1, 0)
    assert outbox.place() is None
    first = outbox.first_due("pager")
    assert first is not None
    assert b'"type":"muster.job.rank_differs"' in first.body
    assert b'"severity":"warning"' in first.body
    outbox.close()


async def test_an_event_that_the_disk_did_not_take_is_tried_again(tmp_path: Path) -> None:
    own, gone = OwnEvents(), EventOutbox(tmp_path / "gone.db")
    gone.close()
    own.tell(of_job(JobEventKind.RANK_DIFFERS))
    with pytest.raises(MusterError):
        await own.deliver(gone, book(), lambda _: None)

    outbox = EventOutbox(tmp_path / "outbox.db")
    await delivered(own, outbox, 1)
    assert outbox.waiting("pager") == 1
    outbox.close()


async def test_where_very_many_wait_further_ones_are_dropped(tmp_path: Path) -> None:
    own = OwnEvents()
    for _ in range(OWN_EVENTS_WAITING + 1):
        own.tell(of_job(JobEventKind.RANK_DIFFERS))
    outbox = EventOutbox(tmp_path / "outbox.db")
    await delivered(own, outbox, OWN_EVENTS_WAITING)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await delivered(own, outbox, 1)
    outbox.close()
