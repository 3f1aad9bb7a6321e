"""Subscriptions of the coordinator as the console serves them; pure."""

from typing import assert_never

from console.events.subscription import (
    EventSubscription,
    MailTarget,
    SlackTarget,
    Target,
    WebhookTarget,
    followed_name,
)
from muster.domain.fleet.access import EVERYWHERE
from muster.domain.notifications.standard_webhook import webhook_key
from muster.domain.notifications.subscription import FollowedSubscription, SubscriptionTarget


def served(followed: FollowedSubscription) -> EventSubscription:
    """A followed subscription as the console serves it."""
    said = followed.subscription
    return EventSubscription(
        name=followed_name(said.project, said.name),
        target=_target(said.target, said.to, followed.keys),
        events=said.events,
        minimum=said.minimum,
        projects=() if said.project == EVERYWHERE else (said.project,),
        jobs=said.jobs,
        owners=said.owners,
        labels=said.labels,
    )


def _target(kind: SubscriptionTarget, to: tuple[str, ...], keys: tuple[str, ...]) -> Target:
    """The target; without keys where those cannot be opened, which each delivery to it then says."""
    match kind:
        case SubscriptionTarget.WEBHOOK:
            opened = (webhook_key(key) for key in keys)
            return WebhookTarget(url=to[0] if to else "", keys=tuple(key for key in opened if key is not None))
        case SubscriptionTarget.SLACK:
            return SlackTarget(url=keys[0] if keys else "")
        case SubscriptionTarget.MAIL:
            return MailTarget(to=to)
        case _:
            assert_never(kind)
