"""The sender: takes deliveries from the outbox to their targets, tries again, and says in the journal how it goes."""

import asyncio
import json
import logging
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import assert_never

from console.events.answer import TargetAnswer
from console.events.book import SubscriptionBook
from console.events.failing.streaks import DeliveryStreaks, Streak
from console.events.mail import Mailer
from console.events.mqtt.broker import Broker
from console.events.outbox import Delivery, DeliveryOutcome, EventOutbox
from console.events.retries import BROKER_AGAIN_AFTER, RETRY_AFTER, pause_after
from console.events.subscription import EventSubscription, MailTarget, MqttTarget, SlackTarget, Target, WebhookTarget
from console.events.web_target import WebTargets
from console.events.wording import slack_body
from muster import __version__
from muster.domain.notifications.cloud_event import CLOUD_EVENT_TYPE
from muster.domain.notifications.standard_webhook import signed_headers

log = logging.getLogger(__name__)

DELIVERIES_AT_ONCE = 8
"""Deliveries that are under way, of all subscriptions; of one subscription it is one."""
_AGENT = f"muster/{__version__}"


class EventTargets:
    """The ways to all kinds of targets."""

    def __init__(
        self,
        web: WebTargets,
        mailer: Mailer | None = None,
        broker: Broker | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`mailer` is None where there is no mail server, and `broker` where there is no broker."""
        self._web = web
        self._mailer = mailer
        self._broker = broker
        self._clock = clock

    async def send(self, subscription: EventSubscription, event: str, body: bytes) -> TargetAnswer:
        """What a target says to an event: a CloudEvent as JSON, for a broker after the line of its topic."""
        match subscription.target:
            case WebhookTarget(keys=()) | SlackTarget(url=""):
                return TargetAnswer(taken=False, told="its key cannot be opened any more; set it anew")
            case WebhookTarget(url=url, keys=keys):
                headers = {"Content-Type": CLOUD_EVENT_TYPE, "User-Agent": _AGENT}
                return await self._web.post(
                    url, {**headers, **signed_headers(keys, event, int(self._clock()), body)}, body
                )
            case SlackTarget(url=url):
                headers = {"Content-Type": "application/json", "User-Agent": _AGENT}
                return await self._web.post(url, headers, slack_body(json.loads(body)))
            case MailTarget(to=to):
                if self._mailer is None:
                    return TargetAnswer(taken=False, told="there is no mail server")
                return await self._mailer.send(to, body)
            case MqttTarget():
                return await self._publish(body)
            case _:
                assert_never(subscription.target)

    async def _publish(self, body: bytes) -> TargetAnswer:
        if self._broker is None:
            return TargetAnswer(taken=False, told="there is no broker")
        topic, _, payload = body.partition(b"\n")
        return await self._broker.publish(topic.decode(), payload)


class Sender:
    """Sends what waits, one delivery of each subscription at a time."""

    def __init__(  # noqa: PLR0913 - one for each thing that a delivery passes
        self,
        outbox: EventOutbox,
        book: SubscriptionBook,
        targets: EventTargets,
        heard: Callable[[DeliveryOutcome], None] = lambda _: None,
        *,
        streaks: DeliveryStreaks | None = None,
        failing: Callable[[str, Streak], Awaitable[None]] | None = None,
        pauses: tuple[float, ...] = RETRY_AFTER,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`heard` is told how each try has ended, once that is on the disk; `failing` of each that has failed."""
        self._outbox = outbox
        self._book = book
        self._heard = heard
        self._streaks = DeliveryStreaks() if streaks is None else streaks
        self._failing = failing
        self._targets = targets
        self._pauses = pauses
        self._clock = clock
        self._turns = asyncio.Semaphore(DELIVERIES_AT_ONCE)
        self._new: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    def look_again(self) -> None:
        """Have it look for what is new in the outbox."""
        for each in self._new.values():
            each.set()

    async def resume(self, subscription: str) -> None:
        """Send again to a target that has failed, as it has taken something now."""
        await asyncio.to_thread(self._outbox.forget_streak, subscription)
        self._streaks.forget(subscription)
        self.look_again()

    async def run(self) -> None:
        """Send until cancelled."""
        self._streaks.load(await asyncio.to_thread(self._outbox.streaks))
        serving: dict[str, tuple[EventSubscription, asyncio.Task[None]]] = {}
        async with asyncio.TaskGroup() as tasks:
            while True:
                wanted = {each.name: each for each in self._book.current}
                for name, (each, task) in list(serving.items()):
                    if wanted.get(name) != each:
                        task.cancel()
                        del serving[name]
                        self._new.pop(name, None)
                        await self.resume(name)
                for name, each in wanted.items():
                    if name not in serving:
                        serving[name] = each, tasks.create_task(self._serve(each), name=f"deliveries of {name}")
                await self._book.changed()

    async def _serve(self, subscription: EventSubscription) -> None:
        new = self._new[subscription.name]
        while True:
            new.clear()
            if self._streaks.is_suspended(subscription.name):
                await new.wait()
                continue
            delivery = await asyncio.to_thread(self._outbox.first_due, subscription.name)
            wait = None if delivery is None else delivery.due - self._clock()
            if delivery is not None and wait is not None and wait <= 0:
                async with self._turns:
                    begun = asyncio.get_running_loop().time()
                    answer = await self._targets.send(subscription, delivery.event, delivery.body)
                    took = asyncio.get_running_loop().time() - begun
                await self._note(delivery, subscription.target, answer, took)
                if answer.gone:
                    await self._end(subscription)
                    return
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await new.wait()

    async def _note(self, delivery: Delivery, target: Target, answer: TargetAnswer, took: float) -> None:
        now = self._clock()
        pause = None
        if not answer.taken and not answer.gone:
            pauses = BROKER_AGAIN_AFTER if isinstance(target, MqttTarget) else self._pauses
            pause = pause_after(delivery.tries + 1, random.random(), pauses)  # noqa: S311 - spreads tries
        outcome = DeliveryOutcome(
            subscription=delivery.subscription,
            event=delivery.event,
            at=now,
            well=answer.taken,
            told=answer.told,
            status=answer.status,
            took=took,
        )
        again_at = None if pause is None else now + pause
        await asyncio.to_thread(partial(self._outbox.tried, delivery, outcome, again_at))
        self._heard(outcome)
        await self._count(outcome, target)
        fields = {"subscription": delivery.subscription, "event": delivery.event, "answer": answer.told}
        if answer.taken:
            log.info("event was delivered", extra=fields)
        elif pause is not None:
            log.warning("event was not delivered and goes again", extra={**fields, "tries": delivery.tries + 1})
        else:
            log.error("event was not delivered and is given up", extra={**fields, "tries": delivery.tries + 1})

    async def _count(self, outcome: DeliveryOutcome, target: Target) -> None:
        """Count failures in a row, which suspend a subscription; a broker is away as a whole, and is never given up."""
        self._streaks.tries[target.kind, outcome.well] += 1
        suspends = not isinstance(target, MqttTarget)
        streak = self._streaks.note(
            outcome.subscription, outcome.at, outcome.told, taken=outcome.well, suspends=suspends
        )
        if streak is not None and self._failing is not None:
            await self._failing(outcome.subscription, streak)
        if streak is not None and streak.suspended:
            log.error(
                "subscription is suspended, as its target takes nothing",
                extra={"subscription": outcome.subscription, "failures": streak.failures},
            )

    async def _end(self, subscription: EventSubscription) -> None:
        """Send nothing more to a target that has said it is gone, in this life of the console."""
        log.error("target is gone (410); remove its subscription", extra={"subscription": subscription.name})
        while (delivery := await asyncio.to_thread(self._outbox.first_due, subscription.name)) is not None:
            outcome = DeliveryOutcome(
                subscription=subscription.name,
                event=delivery.event,
                at=self._clock(),
                well=False,
                told="not sent, as the target is gone",
            )
            await asyncio.to_thread(self._outbox.tried, delivery, outcome, None)
