"""Tickets from others: none but the whole one that the coordinator has made counts."""

from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.ids import NodeId
from muster.trust.tickets import AttachmentTicket, TicketError, TicketSide, make_ticket, read_ticket
from tests.fuzz.effort import fuzzed
from tests.fuzz.harm import changed
from tests.fuzz.messages import seeds

TICKET_KEY = bytes(32)
TICKET = AttachmentTicket(
    attachment="a-1",
    side=TicketSide.CLIENT,
    node=NodeId("a"),
    account="anna",
    not_after=datetime(2026, 5, 1, tzinfo=UTC),
)
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)


@fuzzed
@given(text=ANY_TEXT, seed=seeds)
def test_no_text_but_the_whole_ticket_is_one(text: str, seed: int) -> None:
    genuine = make_ticket(TICKET_KEY, TICKET)
    for each in (text, changed(genuine.encode(), Random(seed)).decode("latin-1"), genuine * 2000):
        if each != genuine:
            with pytest.raises(TicketError):
                read_ticket(TICKET_KEY, each)
