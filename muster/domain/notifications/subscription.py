"""Subscriptions that members of projects make: which events go where, and what became of deliveries; pure."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from urllib.parse import urlsplit

from muster.domain.fleet.access import EVERYWHERE
from muster.domain.notifications.event_types import EVENT_TYPES, EventSeverity
from muster.domain.notifications.standard_webhook import KEY_SIZES, webhook_key

MOST_MAIL_ADDRESSES = 20
"""Addresses of mail of one subscription."""
MOST_FILTERS = 50
"""Types of events, accounts or labels of one subscription."""
MOST_SIGNING_KEYS = 4
"""Keys that sign for one webhook at a time."""
FAILING_DELIVERIES = 4
"""Tries in a row after which a target counts as failing: some three minutes."""
LONGEST_TARGET = 1_000
"""Characters of the address of a target."""
LONGEST_FILTER = 100
"""Characters of each other text of a subscription."""
_MAIL_ADDRESS = re.compile(r"[^\s@<>,;\"]+@[^\s@<>,;\"]+")


class SubscriptionTarget(StrEnum):
    """What kind of target events go to."""

    WEBHOOK = "webhook"  #: a program that gets each event by HTTP, signed
    SLACK = "slack"  #: a chat that understands Slack's incoming webhooks
    MAIL = "mail"  #: people who get mail


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryTry:
    """How one try to deliver an event has ended."""

    event: str
    """The id of the event."""
    at: datetime
    taken: bool
    """Whether the target has taken the event."""
    told: str
    """What the target has said, or what went wrong; never a secret."""
    status: int = 0
    """The status of HTTP or of SMTP that the target has answered with; 0: none."""
    took: timedelta = timedelta(0)
    """The time until the target had answered, or was given up, in milliseconds; 0: it was not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """Which events go where. Its keys are no part of it, and nobody but consoles reads them back."""

    project: str
    """The project that it is of; `*`: all projects, nodes and the fleet."""
    name: str
    target: SubscriptionTarget
    to: tuple[str, ...] = ()
    """The address of a webhook, or those of mail; none where the address is a secret."""
    events: tuple[str, ...] = ("*",)
    """Types of events; `*` stands for any characters."""
    minimum: EventSeverity = EventSeverity.INFO
    """Only events that are at least so grave."""
    jobs: str = "*"
    """Only jobs whose names are like this."""
    owners: tuple[str, ...] = ()
    """Only jobs of these accounts; none: of all."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Only jobs with these labels."""
    updated_at: datetime | None = None
    """When it was made or replaced last."""
    updated_by: str = ""
    failures: int = 0
    """How many tries in a row have failed."""
    last: DeliveryTry | None = None
    """The last try; None: none is known."""

    def only_of(self, account: str) -> bool:
        """Whether it is about jobs of this account alone, in a project."""
        return self.owners == (account,) and self.project != EVERYWHERE


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedSubscription:
    """A subscription with its keys, on its way to a console; never logged."""

    subscription: Subscription
    keys: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionTest:
    """A test that a console is to send to a target now."""

    project: str
    name: str
    event: str
    """The id that the event is to have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedSubscriptions:
    """All subscriptions that a console is to serve, and tests that it is to send."""

    subscriptions: tuple[FollowedSubscription, ...] = ()
    tests: tuple[SubscriptionTest, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedDelivery:
    """How a try to deliver to a subscription has ended, as a console tells it."""

    project: str
    name: str
    outcome: DeliveryTry


def problem_with_subscription(subscription: Subscription, keys: Sequence[str]) -> str | None:
    """What is wrong with a new subscription, as a sentence without a subject and never with a secret; None: nothing."""
    return (
        _problem_with_target(subscription.target, subscription.to, keys)
        or problem_with_events(subscription.events)
        or _problem_with_sizes(subscription)
    )


def problem_with_events(patterns: Collection[str]) -> str | None:
    """Why these are no types of events, as a sentence without a subject; None: they are."""
    odd = next((each for each in patterns if "*" not in each and each not in EVENT_TYPES), None)
    return None if odd is None else f"names events of type {odd[:LONGEST_FILTER]}, which do not happen"


def is_mail_address(text: str) -> bool:
    """Whether a text is like ada@example.com."""
    return _MAIL_ADDRESS.fullmatch(text) is not None


def is_web_address(text: str) -> bool:
    """Whether a text is like https://host/path, with no name of a user in it."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.username is None


def _problem_with_target(kind: SubscriptionTarget, to: Sequence[str], keys: Sequence[str]) -> str | None:
    match kind:
        case SubscriptionTarget.WEBHOOK:
            if len(to) != 1 or not is_web_address(to[0]):
                return "needs one address like https://host/path"
            if not keys or len(keys) > MOST_SIGNING_KEYS or any(webhook_key(key) is None for key in keys):
                sizes = f"{KEY_SIZES.start} to {KEY_SIZES.stop - 1}"
                return f"needs one to {MOST_SIGNING_KEYS} keys like whsec_… ({sizes} bytes in base64), the newest first"
        case SubscriptionTarget.SLACK:
            if to or len(keys) != 1 or not is_web_address(keys[0]) or len(keys[0]) > LONGEST_TARGET:
                return "needs as its key one address like https://host/path, and no other address"
        case SubscriptionTarget.MAIL:
            if keys or not 1 <= len(to) <= MOST_MAIL_ADDRESSES or not all(map(is_mail_address, to)):
                return f"needs one to {MOST_MAIL_ADDRESSES} addresses like ada@example.com, and no key"
    return None


def _problem_with_sizes(subscription: Subscription) -> str | None:
    lists = (subscription.events, subscription.owners, subscription.labels)
    if any(len(each) > MOST_FILTERS for each in lists):
        return f"has more than {MOST_FILTERS} types of events, owners or labels"
    if any(len(each) > LONGEST_TARGET for each in subscription.to):
        return f"has an address of more than {LONGEST_TARGET} characters"
    pairs = (text for pair in subscription.labels.items() for text in pair)
    texts = (*subscription.events, *subscription.owners, subscription.jobs, *pairs)
    if not subscription.events or not subscription.jobs or any(len(each) > LONGEST_FILTER for each in texts):
        return f"has a text that is empty or has more than {LONGEST_FILTER} characters"
    return None
