"""How events are signed and worded, where they may go, and when they go again."""

import json
from typing import Any

import pytest

from console.events.addresses import AllowedPlaces
from console.events.retries import RETRY_AFTER, pause_after
from console.events.wording import mail_text, slack_body, subject_line
from muster.documents import document
from muster.domain.notifications.cloud_event import cloud_event
from muster.domain.notifications.happening import Happening
from muster.domain.notifications.standard_webhook import signed_headers, webhook_key
from tests.unit.console.events.told import of_fleet, of_job, of_node

KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def told(happening: Happening) -> Any:
    return document(cloud_event(happening))


def test_signatures_are_those_of_standard_webhooks() -> None:
    """The example of the specification's libraries."""
    key = webhook_key(KEY)
    assert key is not None
    headers = signed_headers([key], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_two_keys_sign_while_one_follows_the_other() -> None:
    one, other = b"1" * 24, b"2" * 24
    both = signed_headers([one, other], "id", 1, b"x")["webhook-signature"]
    assert both.split() == [signed_headers([key], "id", 1, b"x")["webhook-signature"] for key in (one, other)]


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_c2hvcnQ=", "not base64!", "whsec_" + "QUFB" * 30])
def test_what_is_no_key_is_none(text: str) -> None:
    assert webhook_key(text) is None


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.1.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "::1",
        "fe80::1%eth0",
        "fd00::1",
        "ff02::1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "no address",
    ],
)
def test_events_do_not_go_into_the_network_of_the_console(address: str) -> None:
    assert not AllowedPlaces().may_reach("hooks.example.com", address)


def test_events_go_to_the_open_internet_and_to_what_is_allowed() -> None:
    allowed = AllowedPlaces.parse(["10.0.0.0/8", "*.Internal", "fd00::/8"])
    assert AllowedPlaces().may_reach("hooks.example.com", "93.184.216.34")
    assert AllowedPlaces().may_reach("hooks.example.com", "2606:2800:220:1::1")
    assert allowed.may_reach("anything", "10.9.9.9")
    assert allowed.may_reach("anything", "::ffff:10.9.9.9")
    assert allowed.may_reach("anything", "fd00::7")
    assert allowed.may_reach("HOOKS.internal", "127.0.0.1")
    assert not allowed.may_reach("anything", "127.0.0.1")
    assert [allowed.lists(host) for host in ("10.0.0.1", "fd00::7", "hooks.internal", "h", "127.0.0.1")] == [
        *(True,) * 3,
        *(False,) * 2,
    ]


def test_tries_are_spread_over_a_day_and_end() -> None:
    assert pause_after(1, 0) == RETRY_AFTER[0]
    assert pause_after(2, 1) == pytest.approx(RETRY_AFTER[1] * 1.2)
    assert pause_after(len(RETRY_AFTER), 0) == RETRY_AFTER[-1]
    assert pause_after(len(RETRY_AFTER) + 1, 0) is None
    assert 24 * 3600 < sum(RETRY_AFTER) < 48 * 3600


@pytest.mark.parametrize(
    ("happening", "line"),
    [
        (of_job(), "job train of vision: failed"),
        (of_node(), "node gpu-7: lost"),
        (of_fleet("red"), "fleet: project added"),
        (of_job(name="a\nBcc: x@y"), "job a\\nBcc: x@y of vision: failed"),
    ],
)
def test_a_line_says_what_has_happened_and_is_one_line(happening: Happening, line: str) -> None:
    assert subject_line(told(happening)) == line


def test_names_of_others_ping_nobody_in_a_chat() -> None:
    text = json.loads(slack_body(told(of_job(name="<!channel> & co"))))["text"]
    assert text == "*job &lt;!channel&gt; &amp; co of vision: failed*\nrank 0 failed\n`jobs/k3`"


def test_a_mail_says_whose_job_it_is_and_where_it_ran() -> None:
    lines = mail_text(told(of_job())).splitlines()
    assert lines[0] == "rank 0 failed"
    assert {"job:      k3 (train)", "owner:    ada", "nodes:    a", "event:    job/k3/1/failed"} <= set(lines)
