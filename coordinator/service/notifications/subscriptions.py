"""Operations on subscriptions: who is told of what, how deliveries go, and what consoles follow and report."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace

from coordinator.clock import wall_time
from coordinator.core.events import FleetChanged
from coordinator.engine.engine import Engine
from coordinator.service.notifications.deliveries import OF_TESTS, DeliveryBook, SubscriptionKey
from coordinator.service.operations import Operation, Operations
from coordinator.signals import SUBSCRIPTIONS
from coordinator.trust.caller import Caller
from coordinator.trust.subscriptions import Subscriptions, refuse_to_replace
from muster.domain.errors import ConflictError, InvalidJobError
from muster.domain.event import FleetEventKind
from muster.domain.fleet.access import EVERYWHERE, Access
from muster.domain.notifications.subscription import (
    DeliveryTry,
    FollowedSubscriptions,
    ReportedDelivery,
    Subscription,
    SubscriptionTest,
    problem_with_subscription,
)

TEST_PATIENCE = 15.0
"""Seconds in which a console says how a test went; it waits ten for the target."""
FOLLOW_PACE = 0.2
"""Seconds between two messages for one console; what changes meanwhile is told once."""


class SubscriptionOperations:
    """What callers may do with subscriptions; an empty project is the default one, `*` the fleet."""

    def __init__(
        self,
        operations: Operations,
        engine: Engine,
        subscriptions: Subscriptions,
        book: DeliveryBook,
        patience: float = TEST_PATIENCE,
    ) -> None:
        """`patience` is how many seconds a test may take."""
        self._operations = operations
        self._engine = engine
        self._subscriptions = subscriptions
        self._book = book
        self._patience = patience

    async def put(self, caller: Caller, wish: Subscription, keys: Sequence[str], *, replaces: bool) -> Subscription:
        """The subscription from now on; one that is there is replaced only if that is asked for."""
        project = caller.meant_project(wish.project)
        async with self._operations.begin(caller, "notifications.put", f"{project}/{wish.name}") as operation:
            _require(operation, project)
            made = replace(wish, project=project, updated_at=wall_time(), updated_by=caller.name, failures=0, last=None)
            _require_change(operation, made)
            if problem := problem_with_subscription(made, keys):
                raise InvalidJobError(f"the subscription {made.name!r} {problem}")

            def replaced(before: Subscription) -> None:
                if not replaces:
                    refuse_to_replace(before)
                _require_change(operation, before)

            await self._subscriptions.put(made, keys, operation.done(f"to {made.target}"), replaced)
            self._changed(made)
            return made

    async def list(self, caller: Caller, project: str) -> Sequence[Subscription]:
        """The subscriptions of a project by name, with how their deliveries go."""
        project = caller.meant_project(project)
        async with self._operations.begin(caller, "notifications.list", project) as operation:
            _require(operation, project)
            return [self._book.standing(each) for _, each in sorted(self._subscriptions.of_project(project).items())]

    async def remove(self, caller: Caller, project: str, name: str) -> None:
        """Forget a subscription; raises UnknownNameError."""
        project = caller.meant_project(project)
        async with self._operations.begin(caller, "notifications.remove", f"{project}/{name}") as operation:
            operation.require_access(project)
            gone = self._subscriptions.of(project, name)
            await self._subscriptions.remove(
                project, name, operation.done(), lambda there: _require_change(operation, there)
            )
            self._changed(gone)

    async def test(self, caller: Caller, project: str, name: str) -> DeliveryTry:
        """What the target of a subscription says to a test; ConflictError where no console sends it."""
        project = caller.meant_project(project)
        async with self._operations.begin(caller, "notifications.test", f"{project}/{name}") as operation:
            _require(operation, project)
            _require_change(operation, self._subscriptions.of(project, name))
            if not self._book.served(project):
                raise ConflictError(
                    "no console delivers for this fleet now: start muster-console with --state, and with the token of "
                    "an account of kind console"
                )
            at = int(wall_time().timestamp() * 1_000_000)
            wanted = SubscriptionTest(project=project, name=name, event=f"{OF_TESTS}{project}/{name}/test/{at}")
            with self._book.test(wanted) as ending:
                self._engine.signals.fire(SUBSCRIPTIONS)
                try:
                    async with asyncio.timeout(self._patience):
                        return await ending
                except TimeoutError:
                    raise ConflictError(
                        f"the console has not said within {self._patience:g} s how the test went"
                    ) from None

    async def deliveries(self, caller: Caller, project: str, name: str) -> Sequence[DeliveryTry]:
        """The last tries to deliver to a target, the newest first."""
        project = caller.meant_project(project)
        async with self._operations.begin(caller, "notifications.deliveries", f"{project}/{name}") as operation:
            _require(operation, project)
            self._subscriptions.of(project, name)
            return self._book.tries(SubscriptionKey(project, name))

    async def follow(self, caller: Caller) -> AsyncGenerator[FollowedSubscriptions, None]:
        """All subscriptions that a console serves, with their keys, again after each change; and tests to be sent."""
        sees = _seen_by(caller)
        async with self._operations.begin(caller, "notifications.follow") as operation:
            with self._engine.signals.listen(SUBSCRIPTIONS) as listener, self._book.console(sees):
                while True:
                    found = await self._subscriptions.followed(sees)
                    operation.ended(f"{len(found)} subscriptions")
                    yield FollowedSubscriptions(subscriptions=found, tests=self._book.untold(sees))
                    await listener.wait()
                    await asyncio.sleep(FOLLOW_PACE)

    async def report(self, caller: Caller, reported: Sequence[ReportedDelivery]) -> None:
        """Keep how deliveries went; says among the events where a target begins to fail."""
        sees = _seen_by(caller)
        async with self._operations.begin(caller, "notifications.report") as operation:
            known = [
                each
                for each in reported
                if sees(each.project) and each.name in self._subscriptions.of_project(each.project)
            ]
            last = {SubscriptionKey(each.project, each.name): each.outcome for each in known}
            well = {key for key in last if not self._book.fails(key)}
            for each in known:
                self._book.note(each)
            for key in filter(self._book.fails, well):
                failing = FleetChanged(
                    kind=FleetEventKind.DELIVERY_FAILING,
                    project="" if key.project == EVERYWHERE else key.project,
                    text=f"{key.name}: {last[key].told}",
                    cause=operation.cause,
                )
                await self._engine.apply(failing)

    def _changed(self, subscription: Subscription) -> None:
        self._book.forget(SubscriptionKey(subscription.project, subscription.name))
        self._engine.signals.fire(SUBSCRIPTIONS)


def _require(operation: Operation, project: str) -> None:
    """Ask whether the caller may do it in a project, or with subscriptions of the fleet."""
    if project == EVERYWHERE:
        operation.require_access(project)
    else:
        operation.require_in(project)


def _require_change(operation: Operation, subscription: Subscription) -> None:
    """Ask whether the caller may change what is told: members only what is about their own jobs."""
    if not subscription.only_of(operation.caller.name):
        operation.require_access(subscription.project, Access.OPERATOR)


def _seen_by(caller: Caller) -> Callable[[str], bool]:
    """Whether a console is told of the subscriptions of a project: of those alone whose jobs it may look at."""
    return lambda project: caller.may(Access.OPERATOR if project == EVERYWHERE else Access.VIEWER, project)
