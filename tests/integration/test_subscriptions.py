"""Subscriptions of projects, from whoever makes them to a real receiver, over a real coordinator and console."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from console.events.addresses import AllowedPlaces
from console.events.notifier import held_outbox, notify
from console.events.notify_file import NotifySettings
from console.events.own_events import OwnEvents
from muster.client.client import Client
from muster.domain.errors import (
    ConflictError,
    ExhaustedError,
    InvalidJobError,
    PermissionDeniedError,
    UnknownNameError,
)
from muster.domain.event import FleetEvent, FleetEventKind
from muster.domain.fleet.access import EVERYWHERE, Access, AccountKind
from muster.domain.notifications.standard_webhook import signed_headers, webhook_key
from muster.domain.notifications.subscription import (
    DeliveryTry,
    FollowedSubscription,
    ReportedDelivery,
    Subscription,
    SubscriptionTarget,
)
from tests.integration.consoles import console
from tests.integration.jobs import shell
from tests.integration.receivers import Received, Receiver, receiver
from tests.integration.relays import until
from tests.integration.secured import Secured, muster, secured

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER_KEY = "whsec_" + "QUJD" * 10
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def wish(hook: str = "https://hooks.example.com/x", **said: Any) -> Subscription:
    """A subscription of a webhook to what is submitted."""
    usual: dict[str, Any] = {"project": "vision", "name": "pager", "events": ("muster.job.submitted",)}
    return Subscription(target=SubscriptionTarget.WEBHOOK, to=(hook,), **{**usual, **said})


async def console_token(fleet: Secured, **grants: Access) -> str:
    """The token of a console's account, which sees everything unless something else is said."""
    async with fleet.client() as admin:
        await admin.accounts.add("console", AccountKind.CONSOLE, grants or {EVERYWHERE: Access.OPERATOR})
        secret, _ = await admin.tokens.create("console")
    return secret


@asynccontextmanager
async def delivering(fleet: Secured, token: str, state: Path) -> AsyncIterator[None]:
    """A console that delivers, once it follows."""
    settings = NotifySettings(allowed=AllowedPlaces.parse(["127.0.0.1"]))
    async with fleet.client(token) as own, asyncio.TaskGroup() as tasks:

        async def client() -> Client:
            return own

        with held_outbox(state) as outbox:
            working = tasks.create_task(notify(settings, outbox, client, OwnEvents()), name="console")
            try:
                await until(lambda: outbox.place() is not None)
                yield
            finally:
                working.cancel()
                await asyncio.wait([working])


async def tried(client: Client, many: int) -> tuple[DeliveryTry, ...]:
    """The tries of the subscription once so many are known."""
    async with asyncio.timeout(30):
        while len(found := await client.notifications.deliveries("pager", "vision")) < many:  # noqa: ASYNC110 - a console tells of them by itself
            await asyncio.sleep(0.05)
    return found


def genuine(request: Received, key: str) -> bool:
    known = webhook_key(key)
    assert known is not None
    headers = request.headers
    expected = signed_headers([known], headers["webhook-id"], int(headers["webhook-timestamp"]), request.body)
    return headers["webhook-signature"] == expected["webhook-signature"]


async def submitted(client: Client, hook: Receiver, many: int) -> str:
    """The id of a job that was submitted, and that the receiver was told of last."""
    job = await client.jobs.submit(shell("true", project="vision"), queue_anyway=True)
    received = await hook.until(many)
    assert json.loads(received[-1].body)["subject"] == f"jobs/{job.id}"
    return job.id


async def test_members_are_told_of_their_own_jobs_and_of_no_others(tmp_path: Path) -> None:
    async with secured(tmp_path / "fleet") as fleet, receiver() as hook:
        ada, bob = [await fleet.user(name, {"vision": Access.MEMBER}) for name in ("ada", "bob")]
        async with (
            delivering(fleet, await console_token(fleet), tmp_path / "console"),
            fleet.client(ada) as hers,
            fleet.client(bob) as his,
        ):
            made = await hers.notifications.put(wish(hook.url, owners=("ada",)), [KEY])
            await hers.notifications.test("pager", "vision")
            await his.jobs.submit(shell("true", project="vision"), queue_anyway=True)
            await submitted(hers, hook, 2)
            [last, first] = await tried(hers, 2)
    assert (made.updated_by, made.failures, made.last) == ("ada", 0, None)
    assert all(genuine(each, KEY) for each in hook.received)
    assert [json.loads(each.body)["type"] for each in hook.received] == [
        "muster.notification.test",
        "muster.job.submitted",
    ]
    assert (last.taken, last.told, first.taken) == (True, "204 Taken", True)


async def test_a_test_says_what_the_target_answers_and_the_list_how_deliveries_go(tmp_path: Path) -> None:
    async with secured(tmp_path / "fleet") as fleet, receiver("500 Oh", "200 OK", "503 Busy") as hook:
        token = await console_token(fleet)
        async with delivering(fleet, token, tmp_path / "console"), fleet.client() as admin:
            await admin.projects.add("vision")
            await admin.notifications.put(wish(hook.url), [KEY])
            answers = [await admin.notifications.test("pager", "vision") for _ in range(2)]
            await admin.jobs.submit(shell("true", project="vision"), queue_anyway=True)
            await tried(admin, 3)
            [listed] = await admin.notifications.list("vision")
    assert [(each.taken, each.told) for each in answers] == [(False, "500 Oh"), (True, "200 OK")]
    assert listed.last is not None
    assert (listed.failures, listed.last.told) == (1, "503 Busy")


async def test_a_change_is_served_at_once_and_what_is_removed_is_not(tmp_path: Path) -> None:
    async with secured(tmp_path / "fleet") as fleet, receiver() as old, receiver() as new:
        token = await console_token(fleet)
        async with delivering(fleet, token, tmp_path / "console"), fleet.client() as admin:
            await admin.projects.add("vision")
            await admin.notifications.put(wish(old.url), [KEY])
            await admin.notifications.put(wish(new.url), [OTHER_KEY], replace=True)
            await admin.notifications.test("pager", "vision")
            await submitted(admin, new, 2)
            await admin.notifications.put(wish(old.url, name="other"), [KEY])
            await admin.notifications.remove("pager", "vision")
            await admin.notifications.test("other", "vision")
            await submitted(admin, old, 2)
    assert len(new.received) == 2
    assert all(genuine(each, OTHER_KEY) for each in new.received)


async def test_a_console_that_was_away_delivers_what_happened_meanwhile(tmp_path: Path) -> None:
    async with secured(tmp_path / "fleet") as fleet, receiver() as hook, fleet.client() as admin:
        token = await console_token(fleet)
        await admin.projects.add("vision")
        await admin.notifications.put(wish(hook.url), [KEY])
        async with delivering(fleet, token, tmp_path / "console"):
            await submitted(admin, hook, 1)
            await tried(admin, 1)
        job = await admin.jobs.submit(shell("true", project="vision"), queue_anyway=True)
        async with delivering(fleet, token, tmp_path / "console"):
            received = await hook.until(2)
    assert json.loads(received[1].body)["subject"] == f"jobs/{job.id}"


async def test_only_a_console_is_given_keys_and_they_stand_nowhere_else(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        token = await console_token(fleet)
        async with fleet.client() as admin, fleet.client(token) as own:
            await admin.projects.add("vision")
            made = await admin.notifications.put(wish(), [KEY, OTHER_KEY])
            with pytest.raises(PermissionDeniedError, match="a token of a console's account"):
                await anext(admin.notifications.follow())
            with pytest.raises(PermissionDeniedError):
                await admin.notifications.report([])
            followed = await anext(own.notifications.follow())
            assert await admin.secrets.list("vision") == ()
            entries = await admin.audit.list()
    assert followed.subscriptions == (FollowedSubscription(subscription=made, keys=(KEY, OTHER_KEY)),)
    assert KEY not in repr(followed)
    assert not [each for each in entries if KEY in repr(each)]
    stored = [file for file in tmp_path.rglob("*") if file.is_file()]  # noqa: ASYNC240 - what only takes a moment
    assert not [file for file in stored if KEY.encode() in file.read_bytes()]


async def test_a_console_that_sees_one_project_is_told_of_its_subscriptions_alone(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        for project in ("vision", "speech"):
            await admin.projects.add(project)
        token = await console_token(fleet, vision=Access.VIEWER)
        for project in ("vision", "speech", EVERYWHERE):
            await admin.notifications.put(wish(project=project), [KEY])
        async with fleet.client(token) as own:
            followed = await anext(own.notifications.follow())
    assert [each.subscription.project for each in followed.subscriptions] == ["vision"]


async def test_who_may_change_what_is_told_to_whom(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        tokens = {
            "viewer": await fleet.user("eve", {"vision": Access.VIEWER}),
            "member": await fleet.user("ada", {"vision": Access.MEMBER}),
            "operator": await fleet.user("bob", {"vision": Access.OPERATOR}),
            "stranger": await fleet.user("mallory", {"speech": Access.ADMIN}),
        }

        async def refusal(who: str, wanted: Subscription, *, replace: bool = False) -> str:
            async with fleet.client(tokens[who]) as client:
                try:
                    await client.notifications.put(wanted, [KEY], replace=replace)
                except (PermissionDeniedError, UnknownNameError, ConflictError) as error:
                    return type(error).__name__
            return ""

        assert await refusal("viewer", wish(owners=("eve",))) == "PermissionDeniedError"
        assert await refusal("stranger", wish(owners=("mallory",))) == "UnknownNameError"
        assert await refusal("member", wish()) == "PermissionDeniedError"
        assert await refusal("member", wish(owners=("bob",))) == "PermissionDeniedError"
        assert await refusal("operator", wish(project=EVERYWHERE)) == "UnknownNameError"
        assert await refusal("operator", wish()) == ""
        assert await refusal("member", wish(owners=("ada",)), replace=True) == "PermissionDeniedError"
        assert await refusal("member", wish(name="own", owners=("ada",))) == ""
        assert await refusal("member", wish(name="own", owners=("ada",))) == "ConflictError"
        async with fleet.client(tokens["member"]) as client:
            for call in (client.notifications.remove, client.notifications.test):
                with pytest.raises(PermissionDeniedError):
                    await call("pager", "vision")
            await client.notifications.remove("own", "vision")
            assert [each.name for each in await client.notifications.list("vision")] == ["pager"]


async def test_what_is_no_subscription_is_refused_without_its_secret(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        await admin.projects.add("vision")
        chat = Subscription(project="vision", name="chat", target=SubscriptionTarget.SLACK)
        for wanted, keys, reason in (
            (wish("ftp://x"), [KEY], "one address like"),
            (wish(), ["hush-hush"], "keys like whsec_"),
            (wish(events=("muster.job.exploded",)), [KEY], "muster.job.exploded"),
            (chat, ["hush-hush"], "as its key one address"),
            (wish(jobs="x" * 200), [KEY], "more than 100 characters"),
        ):
            with pytest.raises(InvalidJobError, match=reason) as refused:
                await admin.notifications.put(wanted, keys)
            assert "hush-hush" not in str(refused.value)


async def test_subscriptions_of_a_project_are_bounded_and_keep_it_from_being_removed(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        await admin.projects.add("vision")
        for number in range(50):
            await admin.notifications.put(wish(name=f"n{number}"), [KEY])
        with pytest.raises(ExhaustedError, match="50 subscriptions"):
            await admin.notifications.put(wish(), [KEY])
        with pytest.raises(ConflictError, match="50 subscriptions are kept in it"):
            await admin.projects.remove("vision")


async def test_a_test_is_refused_while_no_console_delivers(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        await admin.projects.add("vision")
        await admin.notifications.put(wish(), [KEY])
        with pytest.raises(ConflictError, match="no console delivers"):
            await admin.notifications.test("pager", "vision")


async def test_a_target_that_fails_is_told_among_the_events_once(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        token = await console_token(fleet)
        async with fleet.client() as admin, fleet.client(token) as own:
            await admin.projects.add("vision")
            await admin.notifications.put(wish(), [KEY])

            def reported(second: int, *, taken: bool = False) -> ReportedDelivery:
                at = NOW + timedelta(seconds=second)
                told = DeliveryTry(event=f"job/k3/1/{second}", at=at, taken=taken, told="503 Busy")
                return ReportedDelivery(project="vision", name="pager", outcome=told)

            await own.notifications.report([reported(each) for each in range(3)])
            await own.notifications.report([reported(each) for each in range(3)])
            [listed] = await admin.notifications.list("vision")
            assert (listed.failures, await failing(admin)) == (3, [])
            await own.notifications.report([reported(each) for each in range(6)])
            assert await failing(admin) == ["target of a subscription takes no events: vision, pager: 503 Busy"]
            await own.notifications.report([reported(6, taken=True)])
            [listed] = await admin.notifications.list("vision")
            assert (listed.failures, len(await failing(admin))) == (0, 1)


async def failing(client: Client) -> list[str]:
    """What is told of targets that take no events."""
    events = [each.event async for page, _ in client.events.pages() for each in page]
    return [
        each.sentence
        for each in events
        if isinstance(each, FleetEvent) and each.kind is FleetEventKind.DELIVERY_FAILING
    ]


async def test_the_command_line_subscribes_tries_and_shows_without_a_key_in_an_argument(tmp_path: Path) -> None:
    async with secured(tmp_path / "fleet") as fleet, receiver("500 Oh") as hook:
        ada = await fleet.user("ada", {"vision": Access.MEMBER})
        async with delivering(fleet, await console_token(fleet), tmp_path / "console"):
            added = await muster(fleet, ada, "notify", "add", "mine", "--webhook", hook.url, "--mine")
            refused = await muster(fleet, ada, "notify", "test", "mine")
            taken = await muster(fleet, ada, "notify", "test", "mine", "-o", "json")
            listed = await muster(fleet, ada, "notify", "list")
            log = await muster(fleet, ada, "notify", "log", "mine")
            removed = await muster(fleet, ada, "notify", "remove", "mine")
    [key] = [line for line in added.output.splitlines() if line.startswith("whsec_")]
    assert all(genuine(each, key) for each in hook.received)
    assert (refused.exit_code, "500 Oh" in refused.output) == (5, True)
    assert json.loads(taken.stdout)["taken"] is True
    assert "204 Taken" in listed.output
    assert [word for line in log.output.splitlines()[1:] for word in ("taken", "failed") if word in line] == [
        "taken",
        "failed",
    ]
    assert (added.exit_code, removed.exit_code) == (0, 0)
    assert key not in listed.output + log.output


async def test_over_http_a_subscription_is_put_tried_looked_at_and_removed(tmp_path: Path) -> None:
    async with secured(tmp_path / "fleet") as fleet, receiver() as hook:
        token = await console_token(fleet)
        ada = await fleet.user("ada", {"vision": Access.OPERATOR})
        async with (
            delivering(fleet, token, tmp_path / "console"),
            console(fleet.doors.clients, fleet.authority.certificate) as served,
            served.http(ada) as http,
        ):
            path = "/v1/projects/vision/notifications"
            made = await http.put(f"{path}/pager", json={"target": "webhook", "to": [hook.url], "keys": [KEY]})
            tried = await http.post(f"{path}/pager/test")
            listed = (await http.get(path)).json()["items"]
            log = (await http.get(f"{path}/pager/deliveries")).json()["items"]
            gone = await http.delete(f"{path}/pager")
            wrong = await http.put(f"{path}/pager", json={"target": "mail", "to": ["nobody"]})
    assert (made.status_code, made.json()["updated_by"], KEY in made.text) == (200, "ada", False)
    assert (tried.json()["taken"], log) == (True, [tried.json()])
    assert [each["last"] for each in listed] == [tried.json()]
    assert (gone.status_code, wrong.status_code) == (204, 400)
