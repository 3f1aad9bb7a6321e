"""Tickets: what is read of them, and what is refused."""

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from muster.domain.ids import NodeId
from muster.trust.tickets import (
    LONGEST_TICKET_TEXT,
    TICKET_SECRET_BYTES,
    AttachmentTicket,
    TicketError,
    TicketPurpose,
    TicketSide,
    make_ticket,
    read_ticket,
    signed_ticket,
    ticket_key,
    ticket_payload,
)

SECRET = bytes(range(TICKET_SECRET_BYTES))
KEY = ticket_key(SECRET, TicketPurpose.ATTACHMENT)
TICKET = AttachmentTicket(
    attachment="a-7",
    side=TicketSide.AGENT,
    node=NodeId("gpu-7"),
    account="anna",
    not_after=datetime(2026, 5, 1, tzinfo=UTC),
)


def test_a_ticket_is_read_as_it_was_made() -> None:
    text = make_ticket(KEY, TICKET)
    assert text.startswith("v1.")
    assert text.count(".") == 2
    assert "=" not in text
    assert read_ticket(KEY, text) == TICKET


def test_a_ticket_with_the_longest_names_still_fits() -> None:
    longest = replace(TICKET, attachment="a" * 253, node=NodeId("n" * 253), account="p" * 255)
    text = make_ticket(KEY, longest)
    assert len(text) <= LONGEST_TICKET_TEXT
    assert read_ticket(KEY, text) == longest


def test_a_ticket_that_nobody_would_take_is_not_made() -> None:
    with pytest.raises(TicketError, match="at most 2048 are taken"):
        make_ticket(KEY, replace(TICKET, account="é" * 1000))


def test_keys_differ_by_secret_and_never_show_it() -> None:
    other = ticket_key(bytes(TICKET_SECRET_BYTES), TicketPurpose.ATTACHMENT)
    assert len({KEY, other, SECRET}) == 3
    assert len(KEY) == TICKET_SECRET_BYTES


def test_a_ticket_of_another_fleet_is_refused() -> None:
    other = ticket_key(bytes(TICKET_SECRET_BYTES), TicketPurpose.ATTACHMENT)
    with pytest.raises(TicketError, match="not signed by this fleet"):
        read_ticket(other, make_ticket(KEY, TICKET))


def test_a_ticket_whose_payload_was_changed_is_refused() -> None:
    version, payload, mac = make_ticket(KEY, TICKET).split(".")
    said = json.loads(base64.urlsafe_b64decode(payload + "=="))
    forged = base64.urlsafe_b64encode(json.dumps({**said, "account": "root"}).encode()).rstrip(b"=").decode()
    with pytest.raises(TicketError, match="not signed by this fleet"):
        read_ticket(KEY, f"{version}.{forged}.{mac}")


@pytest.mark.parametrize(
    "text", ["", ".", "..", "v1..", "v2.e30.e30", "v1.e30", "v1.a.b.c", "vé.e30.e30", "v1." + "a" * LONGEST_TICKET_TEXT]
)
def test_what_is_no_ticket_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(TicketError) as refused:
        read_ticket(KEY, text)
    assert len(text) < 12 or text not in str(refused.value)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        b"{}",
        b'{"attachment":"a","side":"third","node":"n","account":"p","not_after":1}',
        b'{"attachment":"a","side":"client","node":"n","account":"p","not_after":true}',
        b'{"attachment":"a","side":"client","node":"n","account":"p","not_after":1e99}',
        b'{"attachment":"","side":"client","node":"n","account":"p","not_after":1}',
        b'{"attachment":"a","side":"client","node":7,"account":"p","not_after":1}',
    ],
)
def test_a_signed_ticket_that_says_something_else_is_refused(payload: bytes) -> None:
    text = signed_ticket(KEY, payload)
    assert ticket_payload(KEY, text) == payload
    with pytest.raises(TicketError, match="another version of Muster"):
        read_ticket(KEY, text)


def test_the_sides_are_each_others_other_side() -> None:
    assert [side.other.other for side in TicketSide] == list(TicketSide)
    assert TicketSide.CLIENT.other is TicketSide.AGENT
