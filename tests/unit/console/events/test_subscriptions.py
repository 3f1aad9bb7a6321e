"""Which events a subscription wants, and what a file of subscriptions may say."""

from pathlib import Path
from typing import Any

import pytest

from console.events.notify_file import read_notify_file
from console.events.subscription import EventSubscription, MailTarget, SlackTarget, WebhookTarget
from muster.domain.errors import MusterError
from muster.domain.event import JobEventKind, NodeEventKind
from muster.domain.notifications.event_types import EventSeverity
from muster.domain.notifications.happening import Happening
from tests.unit.console.events.told import of_fleet, of_job, of_node

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def subscription(**keys: Any) -> EventSubscription:
    return EventSubscription(name="s", target=MailTarget(to=("a@b.c",)), **keys)


@pytest.mark.parametrize(
    ("keys", "wanted", "others"),
    [
        ({}, [of_job(), of_node(), of_fleet()], []),
        ({"events": ("muster.job.failed",)}, [of_job()], [of_job(JobEventKind.RUNNING), of_node()]),
        ({"events": ("muster.node.*", "*.failed")}, [of_node(), of_job()], [of_fleet(), of_job(JobEventKind.IDLE)]),
        ({"minimum": EventSeverity.WARNING}, [of_job(), of_node()], [of_job(JobEventKind.RUNNING), of_fleet()]),
        ({"minimum": EventSeverity.CRITICAL}, [of_node()], [of_node(NodeEventKind.UNREACHABLE)]),
        ({"projects": ("vision",)}, [of_job(), of_fleet("vision")], [of_job(project="x"), of_node(), of_fleet()]),
        ({"jobs": "train*"}, [of_job(name="train-3"), of_node()], [of_job(name="eval")]),
        ({"owners": ("ada",)}, [of_job()], [of_job(owner="bob")]),
        ({"labels": {"paper": "icml"}}, [of_job(labels={"paper": "icml", "x": "y"})], [of_job()]),
    ],
)
def test_a_subscription_wants_what_it_says(
    keys: dict[str, Any], wanted: list[Happening], others: list[Happening]
) -> None:
    found = subscription(**keys)
    assert all(map(found.wants, wanted))
    assert not any(map(found.wants, others))


def written(folder: Path, text: str) -> Path:
    (folder / "key").write_text(KEY + "\n")
    (folder / "slack").write_text("https://hooks.slack.com/services/T0/B0/very-secret\n")
    (folder / "password").write_text("very-secret\n")
    file = folder / "notify.toml"
    file.write_text(text)
    return file


def test_a_file_has_subscriptions_and_where_they_go(tmp_path: Path) -> None:
    settings = read_notify_file(
        written(
            tmp_path,
            """
            [[subscription]]
            name = "pager"
            events = ["muster.job.failed", "muster.node.*"]
            minimum = "warning"
            projects = ["vision"]
            jobs = "train*"
            labels = {paper = "icml"}
            webhook = "https://pager.example.com/muster"
            secret_files = ["key"]

            [[subscription]]
            name = "chat"
            slack = "slack"

            [[subscription]]
            name = "people"
            mail = ["ada@example.com"]

            [mail]
            server = "mail.example.com:587"
            sender = "muster@example.com"
            user = "muster"
            password_file = "password"

            [web]
            allow = ["10.0.0.0/8", "*.internal"]
            """,
        )
    )

    pager, chat, people = settings.subscriptions
    assert isinstance(pager.target, WebhookTarget)
    assert (pager.target.url, len(pager.target.keys)) == ("https://pager.example.com/muster", 1)
    assert (pager.minimum, pager.jobs, pager.labels) == (EventSeverity.WARNING, "train*", {"paper": "icml"})
    assert isinstance(chat.target, SlackTarget)
    assert people.target == MailTarget(to=("ada@example.com",))
    assert settings.mail is not None
    assert (settings.mail.host, settings.mail.port, settings.mail.password) == ("mail.example.com", 587, "very-secret")
    assert settings.allowed.names("hooks.internal")
    assert "secret" not in repr(settings)


HOOK = '[[subscription]]\nname = "a"\nwebhook = "https://h"\nsecret_files = ["key"]\n'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("subscription = 3", "subscriptions begin with [[subscription]]"),
        ("[[subscription]]\nname = 'A b'", "'A b' is no name of a subscription"),
        ("[[subscription]]\nname = 'a'", "a needs one target: webhook, slack or mail"),
        ("[[subscription]]\nname = 'a'\nslack = 'slack'\nmail = ['a@b']", "a needs one target"),
        ("[[subscription]]\nname = 'a'\nwebhook = 'https://h'", "a: a webhook needs secret_files"),
        ("[[subscription]]\nname = 'a'\nwebhook = 'https://h'\nsecret_files = ['slack']", "holds no key like whsec_"),
        ("[[subscription]]\nname = 'a'\nwebhook = 'https://h'\nsecret_files = ['none']", "cannot read"),
        (HOOK.replace("https", "ftp"), "a: the address of its target is not like https://host/path"),
        (HOOK.replace("https://h", "https://u:p@h"), "the address of its target is not like"),
        (HOOK.replace("https://h", "https://h:port"), "the address of its target is not like"),
        (HOOK.replace("https", "http"), "a: plain http is only for hosts that `allow` in [web] names"),
        (HOOK + HOOK, "the name a is there twice"),
        (HOOK + "events = ['muster.job.fails']", "a names events of type muster.job.fails, which do not happen"),
        (HOOK + "minimum = 'grave'", "a: minimum is one of info, warning, critical"),
        (HOOK + "evnts = []", "a has no key 'evnts'"),
        (HOOK + "projects = 'vision'", "a: projects is a list of texts"),
        (HOOK + "labels = {a = 1}", "a: labels are like"),
        ("[[subscription]]\nname = 'a'\nmail = ['ada']", "a: mail is a list of addresses"),
        ("[[subscription]]\nname = 'a'\nmail = ['ada@b.c']", "a sends mail, and there is no [mail]"),
        ("[mail]\nserver = 'mail'\nsender = 'a@b'", "[mail] needs a server like"),
        ("[mail]\nserver = 'mail:25'\nsender = 'a'", "[mail] needs a sender like"),
        ("[mail]\nserver = 'mail:25'\nsender = 'a@b'\nuser = 'u'", "[mail] needs both user and password_file"),
        ("[mail]\nserver = 'mail:25'\nsender = 'a@b'\nsecurity = 'some'", "security is one of starttls, tls, none"),
        ("[mqtt]", "[mqtt] needs a broker like mqtts://broker.example.com:8883"),
        ("[mqtt]\nbroker = 'https://b'", "[mqtt] needs a broker like"),
        ("[mqtt]\nbroker = 'mqtts://u:p@b'", "[mqtt] needs a broker like"),
        ("[mqtt]\nbroker = 'mqtt://b'", "[mqtt]: mqtt:// is only for a broker on this machine"),
        ("[mqtt]\nbroker = 'mqtts://b'\nprefix = 'a/#'", "[mqtt]: a prefix has no + and no #"),
        ("[mqtt]\nbroker = 'mqtts://b'\ncert = 'c'", "[mqtt] needs both cert and key"),
        ("[mqtt]\nbroker = 'mqtts://b'\ntelemetry = 'nodes'", "[mqtt]: telemetry is a list of texts"),
        ("[mqtt]\nbroker = 'mqtts://b'\ncolour = 'red'", "[mqtt] has no key 'colour'"),
        ("[[[", "cannot read the subscriptions in"),
    ],
)
def test_a_file_with_a_fault_is_refused_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(MusterError) as refused:
        read_notify_file(written(tmp_path, text))
    assert told in str(refused.value)
    assert "secret" not in str(refused.value).replace("secret_files", "")
