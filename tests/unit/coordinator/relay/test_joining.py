"""Which streams are joined, which have to end, and whose tickets count."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.relay import joining
from coordinator.relay.joining import (
    AWAY_FORGOTTEN,
    CLOSED_KNOWN,
    Admitted,
    JoinTable,
    StreamEnd,
    TurnedAway,
)
from muster.domain.ids import NodeId
from muster.rpc.relay import RelayEnding
from muster.trust.tickets import TICKET_LIFE, AttachmentTicket, TicketSide

NOW = datetime(2026, 5, 1, tzinfo=UTC)
LATER = NOW + TICKET_LIFE + timedelta(seconds=1)
CLIENT, AGENT = TicketSide.CLIENT, TicketSide.AGENT


def ticket(side: TicketSide, attachment: str = "a") -> AttachmentTicket:
    return AttachmentTicket(
        attachment=attachment, side=side, node=NodeId("gpu-7"), account="anna", not_after=NOW + TICKET_LIFE
    )


def admitted(answer: Admitted | TurnedAway) -> Admitted:
    assert isinstance(answer, Admitted), answer
    return answer


def turned_away(answer: Admitted | TurnedAway) -> TurnedAway:
    assert isinstance(answer, TurnedAway), answer
    return answer


def joined(table: JoinTable, attachment: str = "a") -> tuple[int, int]:
    """The streams of client and agent of an attachment."""
    client = admitted(table.arrive(ticket(CLIENT, attachment), NOW))
    agent = admitted(table.arrive(ticket(AGENT, attachment), NOW))
    assert (client.peer, agent.peer) == (None, client.stream)
    return client.stream, agent.stream


def endings(ends: tuple[StreamEnd, ...]) -> dict[int, RelayEnding]:
    return {each.stream: each.ending for each in ends}


def test_the_first_side_waits_and_the_second_is_joined_to_it() -> None:
    table = JoinTable()
    client, agent = joined(table)
    assert client != agent
    assert table.streams == 2


def test_streams_of_different_attachments_are_never_joined() -> None:
    table = JoinTable()
    assert admitted(table.arrive(ticket(CLIENT, "a"), NOW)).peer is None
    assert admitted(table.arrive(ticket(AGENT, "b"), NOW)).peer is None


def test_when_one_side_goes_the_other_one_is_told_to_come_again() -> None:
    table = JoinTable()
    client, agent = joined(table)
    assert endings(table.leave(client, NOW)) == {agent: RelayEnding.BROKEN}
    assert table.streams == 0
    assert table.leave(agent, NOW) == ()


def test_a_newer_stream_takes_the_place_of_the_older_one_and_the_other_side_comes_again() -> None:
    table = JoinTable()
    client, agent = joined(table)
    newer = admitted(table.arrive(ticket(CLIENT), NOW))
    assert newer.peer is None
    assert endings(newer.ends) == {client: RelayEnding.REPLACED, agent: RelayEnding.BROKEN}
    assert admitted(table.arrive(ticket(AGENT), NOW)).peer == newer.stream


def test_a_newer_stream_is_joined_to_one_that_still_waits() -> None:
    table = JoinTable()
    agent = admitted(table.arrive(ticket(AGENT), NOW))
    again = admitted(table.arrive(ticket(AGENT), NOW))
    assert endings(again.ends) == {agent.stream: RelayEnding.REPLACED}
    assert admitted(table.arrive(ticket(CLIENT), NOW)).peer == again.stream


def test_who_waited_in_vain_hears_of_whom() -> None:
    table = JoinTable()
    client = admitted(table.arrive(ticket(CLIENT), NOW)).stream
    (end,) = table.given_up(client, NOW)
    assert (end.stream, end.ending) == (client, RelayEnding.ALONE)
    assert end.text == "the agent of gpu-7 did not come within 30 s; `muster nodes gpu-7` tells more"
    assert table.streams == 0


def test_who_was_joined_in_the_last_moment_has_not_waited_in_vain() -> None:
    table = JoinTable()
    client, _ = joined(table)
    assert table.given_up(client, NOW) == ()


def test_a_ticket_that_is_too_old_opens_no_first_stream() -> None:
    refused = turned_away(JoinTable().arrive(ticket(CLIENT), LATER))
    assert refused.ending is RelayEnding.REFUSED
    assert "not open any more" in refused.text


def test_an_old_ticket_counts_as_long_as_its_attachment_is_known_here() -> None:
    table = JoinTable()
    client, _ = joined(table)
    table.leave(client, NOW)
    assert admitted(table.arrive(ticket(CLIENT), LATER)).peer is None


def test_an_old_ticket_counts_as_long_as_the_coordinator_lists_its_attachment() -> None:
    table = JoinTable()
    table.list_open(["a"])
    admitted(table.arrive(ticket(CLIENT), LATER))
    table.list_open([])
    assert turned_away(table.arrive(ticket(CLIENT, "b"), LATER)).ending is RelayEnding.REFUSED


def test_closing_ends_both_streams_and_refuses_their_tickets_with_the_reason() -> None:
    table = JoinTable()
    client, agent = joined(table)
    table.open("a")
    assert endings(table.close("a", "revoked", NOW)) == {client: RelayEnding.CLOSED, agent: RelayEnding.CLOSED}
    refused = turned_away(table.arrive(ticket(CLIENT), NOW))
    assert (refused.ending, refused.text) == (RelayEnding.CLOSED, "revoked")
    assert table.streams == 0


def test_what_is_lost_ends_as_what_nobody_has_closed() -> None:
    table = JoinTable()
    client, agent = joined(table)
    ends = table.close("a", "the agent was restarted", NOW, lost=True)
    assert endings(ends) == {client: RelayEnding.LOST, agent: RelayEnding.LOST}
    refused = turned_away(table.arrive(ticket(CLIENT), NOW))
    assert (refused.ending, refused.text) == (RelayEnding.LOST, "the agent was restarted")


def test_what_was_closed_is_remembered_until_its_tickets_are_too_old_anyway() -> None:
    table = JoinTable()
    table.close("a", "revoked", NOW)
    table.forget(NOW + CLOSED_KNOWN)
    assert turned_away(table.arrive(ticket(CLIENT), NOW)).ending is RelayEnding.CLOSED
    table.forget(NOW + CLOSED_KNOWN + timedelta(seconds=1))
    assert turned_away(table.arrive(ticket(CLIENT), LATER)).ending is RelayEnding.REFUSED


def test_an_attachment_without_sides_is_forgotten_after_a_while_and_not_before() -> None:
    table = JoinTable()
    client, _ = joined(table)
    table.leave(client, NOW)
    assert table.forget(NOW + AWAY_FORGOTTEN) == ()
    assert table.forget(NOW + AWAY_FORGOTTEN + timedelta(seconds=1)) == ("a",)
    assert turned_away(table.arrive(ticket(CLIENT), LATER)).ending is RelayEnding.REFUSED


def test_of_very_many_attachments_without_sides_the_oldest_are_forgotten() -> None:
    table = JoinTable()
    for number in range(joining.MOST_ATTACHMENTS_KNOWN + 2):
        stream = admitted(table.arrive(ticket(CLIENT, f"a{number}"), NOW)).stream
        table.leave(stream, NOW)
    assert table.forget(NOW) == ("a0", "a1")


def test_a_full_relay_takes_no_further_stream_but_one_that_takes_the_place_of_another() -> None:
    table = JoinTable(most_streams=2)
    client, _ = joined(table)
    refused = turned_away(table.arrive(ticket(CLIENT, "b"), NOW))
    assert refused.ending is RelayEnding.FULL
    assert "--relay-streams" in refused.text
    assert client in endings(admitted(table.arrive(ticket(CLIENT), NOW)).ends)
    admitted(table.arrive(ticket(AGENT), NOW))
    assert turned_away(table.arrive(ticket(AGENT, "b"), NOW)).ending is RelayEnding.FULL


def test_bytes_are_counted_for_each_direction_and_told_once() -> None:
    table = JoinTable()
    client, agent = joined(table)
    table.moved(client, 5)
    table.moved(agent, 7)
    (told,) = table.news(10)
    assert (told.account, told.node, told.client, told.agent) == ("anna", "gpu-7", True, True)
    assert (told.bytes_in, told.bytes_out) == (5, 7)
    assert table.news(10) == []
    table.leave(client, NOW)
    assert [(each.client, each.agent, each.bytes_in) for each in table.news(10)] == [(False, False, 5)]


def test_news_come_in_portions_and_again_for_a_coordinator_that_knows_nothing() -> None:
    table = JoinTable()
    for name in ("a", "b", "c"):
        joined(table, name)
    assert [each.attachment for each in table.news(2)] == ["a", "b"]
    table.tell_all()
    assert [each.attachment for each in table.news(5)] == ["a", "b", "c"]


def test_another_fleet_ends_everything() -> None:
    table = JoinTable()
    streams = {*joined(table, "a"), *joined(table, "b")}
    assert set(endings(table.close_all("another fleet", NOW))) == streams


@dataclass
class Model:
    """What a table must be, as sets: which stream is of which side, and which are joined."""

    table: JoinTable = field(default_factory=JoinTable)
    places: dict[int, tuple[str, TicketSide]] = field(default_factory=dict)
    partner: dict[int, int] = field(default_factory=dict)

    def end(self, ends: tuple[StreamEnd, ...]) -> None:
        for each in ends:
            self.drop(each.stream)

    def drop(self, stream: int) -> None:
        del self.places[stream]
        other = self.partner.pop(stream, None)
        if other is not None:
            del self.partner[other]
            assert other not in self.places or other in self.ending, "a side stayed that is joined to nobody"

    ending: set[int] = field(default_factory=set)


STEPS = st.lists(
    st.tuples(st.sampled_from(["arrive", "leave", "give up", "close"]), st.integers(0, 5), st.sampled_from(TicketSide)),
    max_size=80,
)


@given(steps=STEPS)
@pytest.mark.filterwarnings("error")
def test_whatever_happens_each_side_has_one_stream_and_no_stream_is_joined_to_one_that_is_gone(
    steps: list[tuple[str, int, TicketSide]],
) -> None:
    model = Model()
    for what, number, side in steps:
        name = f"a{number % 2}"
        streams = sorted(model.places)
        match what:
            case "arrive":
                answer = model.table.arrive(ticket(side, name), NOW)
                if isinstance(answer, TurnedAway):
                    assert answer.ending is RelayEnding.CLOSED
                    continue
                model.ending = set(endings(answer.ends))
                model.end(answer.ends)
                model.places[answer.stream] = name, side
                if answer.peer is not None:
                    assert model.places[answer.peer] == (name, side.other)
                    assert answer.peer not in model.partner
                    model.partner[answer.stream], model.partner[answer.peer] = answer.peer, answer.stream
            case "leave" if streams:
                stream = streams[number % len(streams)]
                ends = model.table.leave(stream, NOW)
                assert set(endings(ends)) == ({model.partner[stream]} if stream in model.partner else set())
                model.ending = set(endings(ends))
                model.drop(stream)
                model.end(ends)
            case "give up" if streams:
                stream = streams[number % len(streams)]
                ends = model.table.given_up(stream, NOW)
                assert bool(ends) == (stream not in model.partner)
                model.end(ends)
            case "close" if number == 5:
                ends = model.table.close(name, "closed", NOW)
                assert set(endings(ends)) == {each for each, place in model.places.items() if place[0] == name}
                model.ending = set(endings(ends))
                model.end(ends)
        assert model.table.streams == len(model.places)
        assert len(set(model.places.values())) == len(model.places)
