"""Subscriptions on disk: what is known of them in their table, their keys sealed among the secrets."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from coordinator.store.trust.sql import SqlTrust
from coordinator.trust.secrets.secrets import Secrets, forget_unreadable, rotate_key
from coordinator.trust.subscriptions import Subscriptions, refuse_to_replace
from muster.domain.errors import ConflictError
from muster.domain.fleet.access import EVERYWHERE, AuditEntry
from muster.domain.notifications.event_types import EventSeverity
from muster.domain.notifications.subscription import FollowedSubscription, Subscription, SubscriptionTarget

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
KEYS = tuple(f"whsec_{letter * 40}" for letter in "QUJDREVGRzA")
ENTRY = AuditEntry(at=NOW, who="ada", what="notifications.put", target="", origin="", result="ok")
PAGER = Subscription(
    project="vision",
    name="pager",
    target=SubscriptionTarget.WEBHOOK,
    to=("https://hooks.example.com/x",),
    events=("muster.job.*", "muster.node.lost"),
    minimum=EventSeverity.WARNING,
    jobs="train-*",
    owners=("ada", "bob"),
    labels={"paper": "icml"},
    updated_at=NOW,
    updated_by="ada",
)


@contextmanager
def trust(directory: Path) -> Iterator[SqlTrust]:
    store = SqlTrust.open(directory / "coordinator.db")
    try:
        yield store
    finally:
        store.close()


def opened(store: SqlTrust, directory: Path) -> tuple[Secrets, Subscriptions]:
    secrets = Secrets.open(store, directory / "secrets.key", ("vision",))
    return secrets, Subscriptions(store, secrets, ("vision",))


async def test_a_subscription_outlives_the_coordinator_with_its_keys_in_their_order(tmp_path: Path) -> None:
    with trust(tmp_path) as store:
        await opened(store, tmp_path)[1].put(PAGER, KEYS, ENTRY, refuse_to_replace)
    with trust(tmp_path) as store:
        secrets, again = opened(store, tmp_path)
        assert again.of_project("vision") == {"pager": PAGER}
        assert await again.followed(lambda _: True) == (FollowedSubscription(subscription=PAGER, keys=KEYS),)
        assert secrets.of_project("vision") == {}
    kept = (tmp_path / "coordinator.db").read_bytes()
    assert not [key for key in KEYS if key.encode() in kept]


async def test_keys_are_sealed_anew_with_the_next_sealing_key(tmp_path: Path) -> None:
    with trust(tmp_path) as store:
        await opened(store, tmp_path)[1].put(PAGER, KEYS, ENTRY, refuse_to_replace)
        before = {each.sealed for each in store.load_secrets()}
        rotate_key(store, tmp_path / "secrets.key", ENTRY)
        _, again = opened(store, tmp_path)
        assert not before & {each.sealed for each in store.load_secrets()}
        assert await again.followed(lambda _: True) == (FollowedSubscription(subscription=PAGER, keys=KEYS),)


async def test_a_subscription_stays_without_keys_once_nobody_can_open_them(tmp_path: Path) -> None:
    with trust(tmp_path) as store:
        await opened(store, tmp_path)[1].put(PAGER, KEYS, ENTRY, refuse_to_replace)
        (tmp_path / "secrets.key").unlink()
        forget_unreadable(store, tmp_path / "secrets.key", ENTRY)
        _, again = opened(store, tmp_path)
        assert await again.followed(lambda _: True) == (FollowedSubscription(subscription=PAGER),)


async def test_nothing_is_left_of_one_that_is_removed(tmp_path: Path) -> None:
    with trust(tmp_path) as store:
        _, subscriptions = opened(store, tmp_path)
        await subscriptions.put(PAGER, KEYS, ENTRY, refuse_to_replace)
        with pytest.raises(ConflictError, match="already"):
            await subscriptions.put(PAGER, KEYS[:1], ENTRY, refuse_to_replace)
        await subscriptions.remove("vision", "pager", ENTRY, lambda _: None)
        assert (store.load_trust().subscriptions, tuple(store.load_secrets())) == ((), ())


async def test_those_of_the_fleet_are_kept_beside_those_of_projects(tmp_path: Path) -> None:
    mail = Subscription(
        project=EVERYWHERE, name="pager", target=SubscriptionTarget.MAIL, to=("ada@example.com",), updated_at=NOW
    )
    with trust(tmp_path) as store:
        _, subscriptions = opened(store, tmp_path)
        await subscriptions.put(PAGER, KEYS, ENTRY, refuse_to_replace)
        await subscriptions.put(mail, (), ENTRY, refuse_to_replace)
        assert [each.subscription for each in await subscriptions.followed(lambda each: each == EVERYWHERE)] == [mail]
