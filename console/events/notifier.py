"""The notifier: follows events and delivers them for as long as the console runs, whatever goes wrong meanwhile."""

import asyncio
import fcntl
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from console.events.answer import TargetAnswer
from console.events.book import SubscriptionBook
from console.events.failing.streaks import DeliveryStreaks, Streak
from console.events.failing.told import failing_event
from console.events.followed.following import SubscriptionFollower
from console.events.followed.reports import DeliveryReports
from console.events.followed.trial import body_of_test
from console.events.follower import EventFollower
from console.events.mail import Mailer
from console.events.mqtt.broker import Broker
from console.events.mqtt.figures import NodeFigures, QueueFigures
from console.events.mqtt.states import StatePublisher
from console.events.notify_file import NotifySettings
from console.events.outbox import EventOutbox
from console.events.own_events import OwnEvents
from console.events.seen.coordinator_watch import watch_coordinator
from console.events.seen.deleted_jobs import DeletedJobs
from console.events.seen.quota_watch import watch_quotas
from console.events.sender import EventTargets, Sender
from console.events.subscription import MqttTarget
from console.events.web_target import WebTargets
from console.mirror.follower import MirrorFollower
from console.telemetry.sample_follower import follow_samples
from console.upstream.fleet_id import FleetId
from muster.client.client import Client
from muster.domain.errors import ConflictError, MusterError, UnknownNameError
from muster.domain.notifications.happening import EventPlace, Happening

log = logging.getLogger(__name__)

NOTIFY_AGAIN_AFTER = 30.0
"""Seconds until deliveries begin anew after the disk has failed."""
_OUTBOX = "outbox.db"


@contextmanager
def held_outbox(state: Path) -> Iterator[EventOutbox]:
    """The outbox in a state directory, which no other console uses meanwhile; raises MusterError."""
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (state / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConflictError(f"another console uses the state directory {state}") from None
        outbox = EventOutbox(state / _OUTBOX)
        try:
            yield outbox
        finally:
            outbox.close()


def targets_of(settings: NotifySettings, broker: Broker | None = None) -> EventTargets:
    """The ways to the targets of a file of subscriptions."""
    mailer = None if settings.mail is None else Mailer(settings.mail)
    return EventTargets(WebTargets(settings.allowed, settings.authority), mailer, broker)


async def notify(
    settings: NotifySettings,
    outbox: EventOutbox,
    client: Callable[[], Awaitable[Client]],
    own: OwnEvents,
    mirror: MirrorFollower | None = None,
    streaks: DeliveryStreaks | None = None,
) -> None:
    """Follow events and deliver them until cancelled, with those that the console itself has seen.

    Without a mirror it does not see which jobs are deleted, and whether the coordinator is away. In `streaks` it counts
    tries that have failed in a row.
    """
    broker = None if settings.broker is None else Broker(settings.broker)
    book, targets = SubscriptionBook(settings.subscriptions), targets_of(settings, broker)
    reports = DeliveryReports(client)
    fleet = FleetId(client)

    async def failing(name: str, streak: Streak) -> None:
        if (event := failing_event(name, streak, datetime.now(UTC))) is not None:
            own.tell(Happening(event=event, place=EventPlace(), fleet=await fleet.known()))

    sender = Sender(outbox, book, targets, reports.note, streaks=streaks, failing=failing)
    subscriptions = SubscriptionFollower(client, outbox, book, targets, reports, resume=sender.resume)
    states = None if broker is None else StatePublisher(broker, outbox, client)

    def told(happenings: Sequence[Happening]) -> None:
        sender.look_again()
        if states is not None:
            states.changed(happenings)

    follower = EventFollower(client, outbox, book, told)
    deleted = None if mirror is None else DeletedJobs(mirror, fleet, outbox, book, told)
    await asyncio.to_thread(outbox.forget_others, [each.name for each in settings.subscriptions])
    log.info("events are delivered", extra={"subscriptions": len(settings.subscriptions)})
    while True:
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(subscriptions.run(), name="follow subscriptions")
                tasks.create_task(reports.run(), name="report deliveries")
                tasks.create_task(follower.run(), name="follow events")
                tasks.create_task(sender.run(), name="send events")
                tasks.create_task(own.deliver(outbox, book, told), name="events of the console")
                tasks.create_task(watch_quotas(client, fleet, own.tell), name="quotas")
                if mirror is not None and deleted is not None:
                    tasks.create_task(watch_coordinator(mirror, fleet, own.tell), name="the coordinator's silence")
                    tasks.create_task(deleted.run(), name="jobs that are deleted")
                if broker is not None and states is not None:
                    tasks.create_task(broker.run(), name="connection to the broker")
                    tasks.create_task(states.run(), name="states for the broker")
                    tasks.create_task(QueueFigures(broker, client).run(), name="queue for the broker")
                if broker is not None and settings.broker is not None and settings.broker.telemetry:
                    figures = NodeFigures(broker)
                    tasks.create_task(figures.run(), name="samples for the broker")
                    tasks.create_task(follow_samples(await client(), [figures.hear]), name="samples")
        except* MusterError as group:
            log.error("events are not delivered for now", extra={"cause": str(_first(group))})  # noqa: TRY400 - no fault of ours
        await asyncio.sleep(NOTIFY_AGAIN_AFTER)


async def send_test(settings: NotifySettings, name: str, now: datetime) -> TargetAnswer:
    """What the target of a subscription says to an event that is only a test; raises UnknownNameError."""
    found = next((each for each in settings.subscriptions if each.name == name), None)
    if found is None:
        raise UnknownNameError(f"there is no subscription {name!r} in the file")
    if isinstance(found.target, MqttTarget):
        raise ConflictError("a broker gets no tests: its topic `status` says whether the console is connected")
    event = f"notification/{name}/test/{int(now.timestamp() * 1_000_000)}"
    return await targets_of(settings).send(found, event, body_of_test(name, event, now.timestamp()))


def _first(group: BaseExceptionGroup[MusterError]) -> BaseException:
    """One of several errors that came together."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
