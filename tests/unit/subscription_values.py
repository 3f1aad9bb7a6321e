"""Any subscription that travels, and any try to deliver to one, for hypothesis."""

from datetime import timedelta

from hypothesis import strategies as st

from muster.domain.fleet.access import EVERYWHERE
from muster.domain.notifications import subscription
from muster.domain.notifications.event_types import EventSeverity
from tests.unit.plain_values import labels, moments, texts

plain = st.text("abcxyz.*@-", min_size=1, max_size=9)
lists = st.lists(plain, max_size=3).map(tuple)
projects = labels | st.just(EVERYWHERE)
tries = st.builds(
    subscription.DeliveryTry,
    event=texts,
    at=moments,
    taken=st.booleans(),
    told=texts,
    status=st.integers(0, 599),
    took=st.integers(0, 100_000).map(lambda number: timedelta(milliseconds=number)),
)
subscriptions = st.builds(
    subscription.Subscription,
    project=projects,
    name=labels,
    target=st.sampled_from(subscription.SubscriptionTarget),
    to=lists,
    events=lists,
    minimum=st.sampled_from(EventSeverity),
    jobs=plain,
    owners=lists,
    labels=st.dictionaries(plain, plain, max_size=3),
    updated_at=st.none() | moments,
    updated_by=texts,
    failures=st.integers(0, 9),
    last=st.none() | tries,
)
reported = st.builds(subscription.ReportedDelivery, project=projects, name=labels, outcome=tries)
followed = st.builds(
    subscription.FollowedSubscriptions,
    subscriptions=st.lists(
        st.builds(subscription.FollowedSubscription, subscription=subscriptions, keys=lists), max_size=2
    ).map(tuple),
    tests=st.lists(
        st.builds(subscription.SubscriptionTest, project=projects, name=labels, event=texts), max_size=2
    ).map(tuple),
)
