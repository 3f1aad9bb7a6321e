"""Subscriptions, what became of deliveries, and what consoles are told of both."""

from dataclasses import replace
from datetime import timedelta

from muster.domain.fleet.access import EVERYWHERE
from muster.domain.notifications.event_types import EventSeverity
from muster.domain.notifications.subscription import (
    DeliveryTry,
    FollowedSubscription,
    FollowedSubscriptions,
    ReportedDelivery,
    Subscription,
    SubscriptionTarget,
    SubscriptionTest,
)
from muster.rpc.v1 import notifications_pb2 as pb
from muster.wire import checks


def delivery_try_to_wire(tried: DeliveryTry) -> pb.DeliveryTry:
    """How one try has ended."""
    return pb.DeliveryTry(
        event=tried.event,
        at=checks.timestamp(tried.at),
        taken=tried.taken,
        told=tried.told,
        status=tried.status,
        took_ms=tried.took // timedelta(milliseconds=1),
    )


def delivery_try_from_wire(message: pb.DeliveryTry) -> DeliveryTry:
    """How one try has ended; raises WireError."""
    return DeliveryTry(
        event=checks.text(message.event, "DeliveryTry.event"),
        at=checks.moment(message.at, "DeliveryTry.at"),
        taken=message.taken,
        told=checks.message(message.told),
        status=message.status,
        took=timedelta(milliseconds=message.took_ms),
    )


def subscription_to_wire(subscription: Subscription) -> pb.Subscription:
    """What is known of a subscription."""
    return pb.Subscription(
        project=subscription.project,
        name=subscription.name,
        target=subscription.target,
        to=subscription.to,
        events=subscription.events,
        minimum=subscription.minimum,
        jobs=subscription.jobs,
        owners=subscription.owners,
        labels=subscription.labels,
        updated_at=checks.timestamp(subscription.updated_at),
        updated_by=subscription.updated_by,
        failures=subscription.failures,
        last=None if subscription.last is None else delivery_try_to_wire(subscription.last),
    )


def subscription_from_wire(message: pb.Subscription) -> Subscription:
    """What is known of a subscription; raises WireError."""
    wish = subscription_wish_from_wire(message)
    return replace(
        wish,
        project=subscription_project(message.project, "Subscription.project"),
        updated_at=checks.optional_moment(message, "updated_at"),
        updated_by=checks.text(message.updated_by, "Subscription.updated_by"),
        failures=message.failures,
        last=delivery_try_from_wire(message.last) if message.HasField("last") else None,
    )


def subscription_wish_from_wire(message: pb.Subscription) -> Subscription:
    """What a new subscription is to be, in a project that may be left out; raises WireError."""
    for values in (message.to, message.events, message.owners, message.labels):
        checks.few(values, "Subscription")
    return Subscription(
        project=message.project,
        name=checks.label(message.name, "Subscription.name"),
        target=checks.word(SubscriptionTarget, message.target, "Subscription.target"),
        to=tuple(checks.plain(each, "Subscription.to") for each in message.to),
        events=tuple(checks.plain(each, "Subscription.events") for each in message.events),
        minimum=checks.word(EventSeverity, message.minimum, "Subscription.minimum"),
        jobs=checks.plain(message.jobs, "Subscription.jobs"),
        owners=tuple(checks.plain(each, "Subscription.owners") for each in message.owners),
        labels={
            checks.plain(key, "Subscription.labels"): checks.plain(value, "Subscription.labels")
            for key, value in message.labels.items()
        },
    )


def subscription_project(value: str, where: str) -> str:
    """The project of a subscription, or `*`; raises WireError."""
    return value if value == EVERYWHERE else checks.label(value, where)


def reported_delivery_to_wire(reported: ReportedDelivery) -> pb.ReportedDelivery:
    """How a try to deliver to a subscription has ended."""
    outcome = delivery_try_to_wire(reported.outcome)
    return pb.ReportedDelivery(project=reported.project, name=reported.name, outcome=outcome)


def reported_delivery_from_wire(message: pb.ReportedDelivery) -> ReportedDelivery:
    """How a try to deliver to a subscription has ended; raises WireError."""
    return ReportedDelivery(
        project=subscription_project(message.project, "ReportedDelivery.project"),
        name=checks.label(message.name, "ReportedDelivery.name"),
        outcome=delivery_try_from_wire(message.outcome),
    )


def followed_subscriptions_to_wire(followed: FollowedSubscriptions) -> pb.FollowedSubscriptions:
    """What a console is to serve, and tests that it is to send."""
    return pb.FollowedSubscriptions(
        subscriptions=[
            pb.FollowedSubscription(subscription=subscription_to_wire(each.subscription), keys=each.keys)
            for each in followed.subscriptions
        ],
        tests=[pb.SubscriptionTest(project=each.project, name=each.name, event=each.event) for each in followed.tests],
    )


def followed_subscriptions_from_wire(message: pb.FollowedSubscriptions) -> FollowedSubscriptions:
    """What a console is to serve, and tests that it is to send; raises WireError."""
    checks.few(message.subscriptions, "FollowedSubscriptions.subscriptions")
    checks.few(message.tests, "FollowedSubscriptions.tests")
    return FollowedSubscriptions(
        subscriptions=tuple(
            FollowedSubscription(subscription=subscription_from_wire(each.subscription), keys=tuple(each.keys))
            for each in message.subscriptions
        ),
        tests=tuple(
            SubscriptionTest(
                project=subscription_project(each.project, "SubscriptionTest.project"),
                name=checks.label(each.name, "SubscriptionTest.name"),
                event=checks.text(each.event, "SubscriptionTest.event"),
            )
            for each in message.tests
        ),
    )
