"""Deliveries of events to real receivers that misbehave, and to a real mail server."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from console.events.addresses import AllowedPlaces
from console.events.book import SubscriptionBook
from console.events.failing.streaks import SUSPENDED_AFTER_TRIES, DeliveryStreaks
from console.events.mail import Mailer, MailSecurity, MailServer
from console.events.notifier import held_outbox, send_test
from console.events.notify_file import NotifySettings
from console.events.outbox import Delivery, DeliveryOutcome, EventOutbox, NewDelivery
from console.events.sender import EventTargets, Sender
from console.events.subscription import EventSubscription, MailTarget, SlackTarget, Target, WebhookTarget
from console.events.web_target import WebTargets
from console.events.wording import subject_line
from muster.documents import document
from muster.domain.errors import ConflictError, UnknownNameError
from muster.domain.notifications.cloud_event import cloud_event
from muster.domain.notifications.happening import EventPlace
from muster.domain.notifications.standard_webhook import signed_headers
from tests.integration.consoles import certified
from tests.integration.receivers import CLOSES, HANGS, mail_sink, receiver
from tests.unit.console.events.told import of_job

KEY = b"k" * 32
LOOPBACK = AllowedPlaces.parse(["127.0.0.1", "localhost"])
PAUSES = (0.01,) * 4
GONE = Delivery(number=0, subscription="s", event="e0", body=b"", tries=0, due=0.0)
EVENT: Any = document(cloud_event(of_job()))
BODY = json.dumps(EVENT).encode()


def settings(target: Target, allowed: AllowedPlaces = LOOPBACK, mail: MailServer | None = None) -> NotifySettings:
    return NotifySettings(subscriptions=(EventSubscription(name="s", target=target),), allowed=allowed, mail=mail)


@asynccontextmanager
async def sending(
    directory: Path, target: Target, events: Sequence[str], web: WebTargets, mailer: Mailer | None = None
) -> AsyncIterator[EventOutbox]:
    """These events on their way to a target."""
    with held_outbox(directory) as outbox:
        waiting = [NewDelivery(subscription="s", event=event, subject="jobs/k3", body=BODY) for event in events]
        outbox.take(waiting, EventPlace(1, 1), 0.0)
        book = SubscriptionBook([EventSubscription(name="s", target=target)])
        sender = Sender(outbox, book, EventTargets(web, mailer), pauses=PAUSES)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(sender.run(), name="sender")
            yield outbox
            running.cancel()


async def test_a_subscription_that_is_suspended_is_sent_nothing_until_somebody_sees_to_it(tmp_path: Path) -> None:
    """The target has failed for six days before: the next failure suspends the subscription."""
    heard: asyncio.Queue[bool] = asyncio.Queue()
    now = timedelta(days=6).total_seconds()
    async with receiver("500 Oh") as hook:
        with held_outbox(tmp_path) as outbox:
            waiting = [
                NewDelivery(subscription="s", event=event, subject="jobs/k3", body=BODY) for event in ("e1", "e2")
            ]
            outbox.take(waiting, EventPlace(1, 1), 0.0)
            failed = DeliveryOutcome(subscription="s", event="e0", at=0.0, well=False, told="500 Oh")
            for _ in range(SUSPENDED_AFTER_TRIES):
                outbox.tried(GONE, failed, None)
            book = SubscriptionBook([EventSubscription(name="s", target=WebhookTarget(url=hook.url, keys=(KEY,)))])
            streaks = DeliveryStreaks()
            sender = Sender(
                outbox,
                book,
                EventTargets(WebTargets(LOOPBACK)),
                lambda outcome: heard.put_nowait(outcome.well),
                streaks=streaks,
                pauses=(0.0,),
                clock=lambda: now,
            )
            async with asyncio.TaskGroup() as tasks, asyncio.timeout(30):
                running = tasks.create_task(sender.run(), name="sender")
                before = await heard.get(), streaks.is_suspended("s"), outbox.waiting("s")
                await sender.resume("s")
                after = await heard.get(), await heard.get()
                running.cancel()
            newest = outbox.outcomes("s", 1)[0]
            left = outbox.streaks()
    assert before == (False, True, 2)
    assert after == (True, True)
    assert (newest.status, newest.took > 0, left) == (204, True, {})


async def ended(outbox: EventOutbox, tries: int) -> list[DeliveryOutcome]:
    """How so many tries have ended, the first one first."""
    async with asyncio.timeout(30):
        while len(found := outbox.outcomes("s", 99)) < tries:  # noqa: ASYNC110 - it is a file that changes
            await asyncio.sleep(0.01)
    return list(reversed(found))


async def test_an_event_goes_again_until_it_is_taken_with_the_id_that_it_had(tmp_path: Path) -> None:
    async with receiver() as inside, receiver("500 Oh", f"302 Found {inside.url}/x", CLOSES, HANGS) as hook:
        web = WebTargets(LOOPBACK, patience=0.5)
        async with sending(tmp_path, WebhookTarget(url=hook.url, keys=(KEY,)), ["e1", "e2"], web) as outbox:
            told = [(each.event, each.well, each.told) for each in await ended(outbox, 6)]
            left = outbox.waiting("s")
        received = await hook.until(6)
    assert told == [
        ("e1", False, "500 Oh"),
        ("e1", False, "302 Found; redirects are not followed"),
        ("e1", False, "ServerDisconnected"),
        ("e1", False, "no answer within 0.5 s"),
        ("e1", True, "204 Taken"),
        ("e2", True, "204 Taken"),
    ]
    assert left == 0
    assert [each.headers["webhook-id"] for each in received] == ["e1"] * 5 + ["e2"]
    assert inside.received == []


async def test_a_receiver_can_tell_that_an_event_is_genuine(tmp_path: Path) -> None:
    async with receiver() as hook:
        target = WebhookTarget(url=f"{hook.url}/muster?for=ada", keys=(KEY, b"o" * 24))
        async with sending(tmp_path, target, ["e1"], WebTargets(LOOPBACK)):
            [request] = await hook.until(1)
    at = int(request.headers["webhook-timestamp"])
    assert request.path == "/muster?for=ada"
    assert request.headers["content-type"] == "application/cloudevents+json"
    assert (
        request.headers["webhook-signature"] == signed_headers(target.keys, "e1", at, request.body)["webhook-signature"]
    )
    assert json.loads(request.body) == EVENT


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "2130706433", "[::ffff:127.0.0.1]"])
async def test_nothing_goes_to_the_machine_of_the_console_unless_it_is_allowed(tmp_path: Path, host: str) -> None:
    async with receiver() as hook:
        url = hook.url.replace("127.0.0.1", host)
        web = WebTargets(AllowedPlaces())
        async with sending(tmp_path, WebhookTarget(url=url, keys=(KEY,)), ["e1"], web) as outbox:
            outcomes = await ended(outbox, len(PAUSES) + 1)
            left = outbox.waiting("s")
    assert hook.received == []
    assert left == 0, "it is given up after its last try"
    assert all("which is not on the open internet and not allowed" in each.told for each in outcomes)


async def test_a_target_that_is_gone_gets_nothing_more(tmp_path: Path) -> None:
    async with receiver("410 Gone") as hook:
        target = WebhookTarget(url=hook.url, keys=(KEY,))
        async with sending(tmp_path, target, ["e1", "e2"], WebTargets(LOOPBACK)) as outbox:
            told = [each.told for each in await ended(outbox, 2)]
            left = outbox.waiting("s")
    assert told == ["410 Gone", "not sent, as the target is gone"]
    assert (left, len(hook.received)) == (0, 1)


async def test_a_target_whose_certificate_nobody_knows_gets_nothing_and_one_that_is_known_does(tmp_path: Path) -> None:
    files = certified(tmp_path)
    shown = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    shown.load_cert_chain(files["cert"], files["key"])
    async with receiver() as hook:
        server = await asyncio.start_server(hook.serve, "127.0.0.1", 0, ssl=shown)
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            strange = await WebTargets(LOOPBACK).post(url, {}, b"{}")
            known = await WebTargets(LOOPBACK, files["authority"]).post(url, {}, b"{}")
    assert (strange.taken, strange.told, known.taken) == (False, "its certificate is not believed", True)


async def test_a_chat_gets_a_sentence(tmp_path: Path) -> None:
    async with (
        receiver("200 OK") as hook,
        sending(tmp_path, SlackTarget(url=f"{hook.url}/T0/secret"), ["e1"], WebTargets(LOOPBACK)) as outbox,
    ):
        [request] = await hook.until(1)
        await ended(outbox, 1)
    assert json.loads(request.body)["text"].startswith("*job train of vision: failed*\n")


async def test_mail_is_sent_after_tls_has_begun_and_again_where_it_was_refused(tmp_path: Path) -> None:
    files = certified(tmp_path)
    shown = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    shown.load_cert_chain(files["cert"], files["key"])
    async with mail_sink(shown, "451 later") as sink:
        server = MailServer(host="127.0.0.1", port=sink.port, sender="muster@b.c", authority=files["authority"])
        target = MailTarget(to=("ada@b.c",))
        async with sending(tmp_path, target, ["e1"], WebTargets(LOOPBACK), Mailer(server)) as outbox:
            told = [(each.well, each.told) for each in await ended(outbox, 2)]
    [mail] = sink.mails
    assert told == [(False, "451 later"), (True, "taken")]
    assert (mail["To"], mail["Subject"]) == ("ada@b.c", f"[Muster] {subject_line(EVENT)}")
    assert mail["Message-ID"] == "<job.k3.1.failed@f1ee7.muster>"
    assert "rank 0 failed" in mail.get_content()


@pytest.mark.parametrize("security", [MailSecurity.STARTTLS, MailSecurity.TLS])
async def test_no_mail_is_sent_in_plain_text_unless_that_is_said(security: MailSecurity) -> None:
    async with mail_sink() as sink:
        server = MailServer(host="127.0.0.1", port=sink.port, sender="m@b.c", security=security)
        answer = await Mailer(server, patience=2.0).send(("ada@b.c",), BODY)
    assert not answer.taken
    assert sink.mails == []


async def test_a_test_says_what_the_target_has_answered() -> None:
    now = datetime(2026, 11, 21, tzinfo=UTC)
    async with receiver("200 OK", "403 No") as hook:
        wanted = settings(WebhookTarget(url=hook.url, keys=(KEY,)))
        taken, refused = [await send_test(wanted, "s", now) for _ in range(2)]
        with pytest.raises(UnknownNameError, match="there is no subscription 'x'"):
            await send_test(wanted, "x", now)
    assert (taken.taken, refused.taken, refused.told) == (True, False, "403 No")
    assert json.loads(hook.received[0].body)["type"] == "muster.notification.test"


def test_two_consoles_do_not_send_from_one_directory(tmp_path: Path) -> None:
    with (
        held_outbox(tmp_path),
        pytest.raises(ConflictError, match="another console uses the state directory"),
        held_outbox(tmp_path),
    ):
        pass
