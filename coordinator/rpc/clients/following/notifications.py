"""The clients' calls about subscriptions, and what consoles follow and report, as gRPC has them."""

import asyncio
from contextlib import aclosing

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.clients.jobs import READER_PATIENCE
from coordinator.rpc.refusals import translated
from coordinator.rpc.streams import offer, streaming
from coordinator.service.notifications.subscriptions import SubscriptionOperations
from muster.rpc.v1 import notifications_pb2 as pb
from muster.rpc.v1 import notifications_pb2_grpc
from muster.wire import checks
from muster.wire.notifications.subscriptions import (
    delivery_try_to_wire,
    followed_subscriptions_to_wire,
    reported_delivery_from_wire,
    subscription_to_wire,
    subscription_wish_from_wire,
)


class NotificationService(notifications_pb2_grpc.NotificationServiceServicer):
    """Translates calls about subscriptions."""

    def __init__(self, subscriptions: SubscriptionOperations, patience: float = READER_PATIENCE) -> None:
        self._subscriptions = subscriptions
        self._patience = patience
        self.closing = asyncio.Event()

    @translated
    async def Put(self, request: pb.PutSubscriptionRequest, context: Context) -> pb.Subscription:
        """A subscription from now on."""
        checks.few(request.keys, "PutSubscriptionRequest.keys")
        wish = subscription_wish_from_wire(request.subscription)
        made = await self._subscriptions.put(caller(), wish, tuple(request.keys), replaces=request.replace)
        return subscription_to_wire(made)

    @translated
    async def List(self, request: pb.ListSubscriptionsRequest, context: Context) -> pb.ListSubscriptionsResponse:
        """What is known of subscriptions, by name."""
        found = await self._subscriptions.list(caller(), request.project)
        return pb.ListSubscriptionsResponse(subscriptions=map(subscription_to_wire, found))

    @translated
    async def Remove(self, request: pb.RemoveSubscriptionRequest, context: Context) -> pb.RemoveSubscriptionResponse:
        """Forget a subscription."""
        await self._subscriptions.remove(caller(), request.project, request.name)
        return pb.RemoveSubscriptionResponse()

    @translated
    async def Test(self, request: pb.TestSubscriptionRequest, context: Context) -> pb.DeliveryTry:
        """What a target says to a test."""
        return delivery_try_to_wire(await self._subscriptions.test(caller(), request.project, request.name))

    @translated
    async def Deliveries(self, request: pb.DeliveriesRequest, context: Context) -> pb.DeliveriesResponse:
        """The last tries to deliver to a target."""
        found = await self._subscriptions.deliveries(caller(), request.project, request.name)
        return pb.DeliveriesResponse(tries=map(delivery_try_to_wire, found))

    @streaming
    async def Follow(self, request: pb.FollowSubscriptionsRequest, context: Context) -> None:  # type: ignore[override]  # the stubs know no answer by `context.write`
        """All subscriptions with their keys, again after each change."""
        async with aclosing(self._subscriptions.follow(caller())) as followed:
            async for each in followed:
                await offer(context, followed_subscriptions_to_wire(each), self._patience)

    @translated
    async def Report(self, request: pb.ReportDeliveriesRequest, context: Context) -> pb.ReportDeliveriesResponse:
        """Keep how deliveries went."""
        checks.few(request.deliveries, "ReportDeliveriesRequest.deliveries")
        await self._subscriptions.report(caller(), tuple(map(reported_delivery_from_wire, request.deliveries)))
        return pb.ReportDeliveriesResponse()
