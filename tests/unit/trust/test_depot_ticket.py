from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from muster.trust.depot_ticket import DepotOperation, DepotTicket, make_depot_ticket, read_depot_ticket
from muster.trust.tickets import TicketError, TicketPurpose, signed_ticket, ticket_key

SECRET = bytes(range(32))
KEY = ticket_key(SECRET, TicketPurpose.DEPOT)
NOW = datetime(2026, 11, 25, tzinfo=UTC)
TICKET = DepotTicket(
    operation=DepotOperation.GET,
    ticket="t1",
    project="vision",
    account="gpu-7",
    tree="ab" * 32,
    room=0,
    not_after=NOW + timedelta(hours=24),
)


def test_a_ticket_says_what_it_was_made_for() -> None:
    assert read_depot_ticket(KEY, make_depot_ticket(KEY, TICKET), NOW) == TICKET


def test_a_ticket_counts_until_its_time_is_over() -> None:
    text = make_depot_ticket(KEY, TICKET)
    read_depot_ticket(KEY, text, TICKET.not_after - timedelta(seconds=1))
    with pytest.raises(TicketError, match="time of the ticket is over"):
        read_depot_ticket(KEY, text, TICKET.not_after)


def test_a_ticket_of_another_purpose_is_worth_nothing_here() -> None:
    other = ticket_key(SECRET, TicketPurpose.ATTACHMENT)
    with pytest.raises(TicketError, match="not signed by this fleet"):
        read_depot_ticket(KEY, make_depot_ticket(other, TICKET), NOW)


def test_a_ticket_that_was_changed_is_refused() -> None:
    mine = make_depot_ticket(KEY, TICKET)
    more = make_depot_ticket(bytes(32), replace(TICKET, operation=DepotOperation.PUT, room=1 << 40))
    mixed = f"{more.rpartition('.')[0]}.{mine.rpartition('.')[2]}"
    with pytest.raises(TicketError, match="not signed"):
        read_depot_ticket(KEY, mixed, NOW)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        b"{}",
        b'{"operation":"all","ticket":"t","project":"p","account":"a","tree":"","room":0,"not_after":1}',
        b'{"operation":"put","ticket":"t","project":"p","account":"a","tree":"","room":-1,"not_after":1}',
        b'{"operation":"put","ticket":"t","project":"p","account":"a","tree":"","room":true,"not_after":1}',
        b'{"operation":"put","ticket":"t","project":"p","account":"a","tree":"","room":0,"not_after":1e99}',
    ],
)
def test_a_payload_that_is_no_ticket_for_the_depot_is_refused(payload: bytes) -> None:
    with pytest.raises(TicketError, match="another version"):
        read_depot_ticket(KEY, signed_ticket(KEY, payload), NOW)
