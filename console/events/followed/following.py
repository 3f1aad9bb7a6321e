"""The follower of subscriptions: keeps the book as the coordinator has it, and sends the tests that it asks for."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing

from console.events.book import SubscriptionBook
from console.events.followed.reports import DeliveryReports
from console.events.followed.targets import served
from console.events.followed.trial import body_of_test
from console.events.outbox import DeliveryOutcome, EventOutbox
from console.events.sender import EventTargets
from console.events.subscription import followed_name
from muster.client.client import Client
from muster.domain.errors import MusterError, NotSignedInError, PermissionDeniedError
from muster.domain.notifications.subscription import FollowedSubscription, SubscriptionTest

log = logging.getLogger(__name__)

SUBSCRIPTIONS_AGAIN_AFTER = 5.0
"""Seconds after which a broken stream of subscriptions is begun again."""
OUTCOMES_TOLD_AGAIN = 20
"""Newest outcomes of each subscription that a coordinator is told anew, as it keeps them in memory."""


class SubscriptionFollower:
    """Follows subscriptions with the console's own token."""

    def __init__(  # noqa: PLR0913 - one for each thing that a delivery passes
        self,
        client: Callable[[], Awaitable[Client]],
        outbox: EventOutbox,
        book: SubscriptionBook,
        targets: EventTargets,
        reports: DeliveryReports,
        *,
        resume: Callable[[str], Awaitable[None]] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`resume` hears of each subscription whose target has taken a test."""
        self._client = client
        self._outbox = outbox
        self._book = book
        self._targets = targets
        self._reports = reports
        self._clock = clock
        self._resume = resume

    async def run(self) -> None:
        """Follow until cancelled, or until the coordinator says that this token may not."""
        # The group is here, as what ends a stream within a group comes out of it as one of several.
        async with asyncio.TaskGroup() as tests:
            while True:
                if not await self._follow_once(tests):
                    return
                await asyncio.sleep(SUBSCRIPTIONS_AGAIN_AFTER)

    async def _follow_once(self, tests: asyncio.TaskGroup) -> bool:
        """Follow until the stream breaks; whether to try again."""
        try:
            await self._follow(tests)
        except NotSignedInError as error:
            log.warning("subscriptions cannot be followed", extra={"cause": str(error)})
        except PermissionDeniedError as error:
            if not self._book.is_known:
                log.info("only subscriptions of the file are served", extra={"cause": str(error)})
                self._book.follow(())
                return False
            log.warning("subscriptions cannot be followed any more", extra={"cause": str(error)})
        except MusterError as error:
            log.warning("subscriptions cannot be followed", extra={"cause": str(error)})
        return True

    async def _follow(self, tests: asyncio.TaskGroup) -> None:
        client = await self._client()
        first = True
        async with aclosing(client.notifications.follow()) as told:
            async for each in told:
                await self._serve(each.subscriptions, first=first)
                first = False
                for test in each.tests:
                    tests.create_task(self._send_test(test), name=f"test of {test.name}")

    async def _serve(self, followed: Sequence[FollowedSubscription], *, first: bool) -> None:
        subscriptions = [served(each) for each in followed]
        names = [each.name for each in subscriptions]
        self._book.follow(subscriptions)
        await asyncio.to_thread(self._outbox.forget_others, names, followed=True)
        if first:
            log.info("subscriptions are followed", extra={"subscriptions": len(names)})
            for name in names:
                for outcome in reversed(await asyncio.to_thread(self._outbox.outcomes, name, OUTCOMES_TOLD_AGAIN)):
                    self._reports.note(outcome)

    async def _send_test(self, test: SubscriptionTest) -> None:
        name = followed_name(test.project, test.name)
        found = self._book.named(name)
        if found is None:
            return
        now = self._clock()
        begun = asyncio.get_running_loop().time()
        answer = await self._targets.send(found, test.event, body_of_test(name, test.event, now))
        took = asyncio.get_running_loop().time() - begun
        if answer.taken and self._resume is not None:
            await self._resume(name)
        log.info("test was sent", extra={"subscription": name, "taken": answer.taken, "answer": answer.told})
        outcome = DeliveryOutcome(
            subscription=name,
            event=test.event,
            at=self._clock(),
            well=answer.taken,
            told=answer.told,
            status=answer.status,
            took=took,
        )
        self._reports.note(outcome)
