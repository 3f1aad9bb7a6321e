"""The SDK for subscriptions: who is told of what happens, and how deliveries go."""

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from typing import Any

from muster.client.calls import Calls
from muster.domain.notifications.subscription import (
    DeliveryTry,
    FollowedSubscriptions,
    ReportedDelivery,
    Subscription,
)
from muster.rpc.v1 import notifications_pb2 as pb
from muster.rpc.v1.notifications_pb2_grpc import NotificationServiceStub
from muster.wire.notifications.subscriptions import (
    delivery_try_from_wire,
    followed_subscriptions_from_wire,
    reported_delivery_to_wire,
    subscription_from_wire,
    subscription_to_wire,
)


class NotificationsClient:
    """Subscriptions, reached as `client.notifications`; those of the project `*` are about the whole fleet."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of NotificationService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(NotificationServiceStub)

    async def put(self, subscription: Subscription, keys: Sequence[str] = (), *, replace: bool = False) -> Subscription:
        """Have a target told of events; ConflictError if a subscription is there that must not be replaced.

        `keys` are those that sign for a webhook, the newest first, or the address of a chat. Nobody reads them back.

        >>> wish = Subscription(project="vision", name="ada", target=SubscriptionTarget.MAIL, to=("ada@example.com",))
        >>> await client.notifications.put(wish)
        """
        request = pb.PutSubscriptionRequest(subscription=subscription_to_wire(subscription), keys=keys, replace=replace)
        return subscription_from_wire(await self._calls.ask(self._stub.Put, request, pauses=()))

    async def list(self, project: str = "") -> tuple[Subscription, ...]:
        """The subscriptions of a project by name, each with its last try and how many have failed in a row.

        >>> failing = [each.name for each in await client.notifications.list("vision") if each.failures]
        """
        answer = await self._calls.ask(self._stub.List, pb.ListSubscriptionsRequest(project=project))
        return tuple(map(subscription_from_wire, answer.subscriptions))

    async def remove(self, name: str, project: str = "") -> None:
        """Forget a subscription; what waits for it is not delivered any more.

        >>> await client.notifications.remove("ada", "vision")
        """
        await self._calls.ask(self._stub.Remove, pb.RemoveSubscriptionRequest(project=project, name=name), pauses=())

    async def test(self, name: str, project: str = "") -> DeliveryTry:
        """Have a console send a test, and wait for what the target says to it: allow 20 s.

        Raises ConflictError where no console delivers for the fleet.

        >>> answer = await client.notifications.test("ada", "vision")
        """
        request = pb.TestSubscriptionRequest(project=project, name=name)
        return delivery_try_from_wire(await self._calls.ask(self._stub.Test, request, pauses=()))

    async def deliveries(self, name: str, project: str = "") -> tuple[DeliveryTry, ...]:
        """The last tries to deliver to a target, the newest first.

        >>> refused = [each.told for each in await client.notifications.deliveries("ada") if not each.taken]
        """
        answer = await self._calls.ask(self._stub.Deliveries, pb.DeliveriesRequest(project=project, name=name))
        return tuple(map(delivery_try_from_wire, answer.tries))

    async def follow(self) -> AsyncGenerator[FollowedSubscriptions, None]:
        """All subscriptions with their keys, again after each change, until the stream breaks; for consoles alone.

        >>> async for followed in client.notifications.follow():
        ...     print(len(followed.subscriptions))
        """
        request = pb.FollowSubscriptionsRequest()
        async with aclosing(self._calls.stream(self._stub.Follow, request)) as messages:
            async for message in messages:
                yield followed_subscriptions_from_wire(message)

    async def report(self, deliveries: Iterable[ReportedDelivery]) -> None:
        """Tell how deliveries went, as a console; what is told again counts once.

        >>> await client.notifications.report([ReportedDelivery(project="vision", name="ada", outcome=tried)])
        """
        request = pb.ReportDeliveriesRequest(deliveries=map(reported_delivery_to_wire, deliveries))
        await self._calls.ask(self._stub.Report, request)
