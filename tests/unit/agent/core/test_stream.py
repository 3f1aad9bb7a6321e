"""What an agent says on a stream to the coordinator, and when it gives one up."""

from agent.core.events import Contact, Disconnected, PlanReceived
from agent.core.stream import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    Acknowledged,
    Beat,
    Broke,
    Heard,
    Leave,
    Opened,
    PassOn,
    PlanHeard,
    SayHello,
    StreamAction,
    StreamState,
    StreamTimePassed,
    TakeUp,
    Welcomed,
    advance,
)
from muster.domain.gangs.plan import Plan

PATIENCE, INTERVAL, LEASE = 15.0, 10.0, 30.0
WELCOME = Welcomed(interval=INTERVAL, lease=LEASE)
PLAN = Plan(revision=3)


def opened(at: float = 100.0) -> StreamState:
    stream = StreamState(PATIENCE)
    advance(stream, Opened(), at)
    return stream


def welcomed(at: float = 100.0) -> StreamState:
    stream = opened(at)
    advance(stream, WELCOME, at)
    return stream


def left(cause: str) -> list[StreamAction]:
    return [Leave(cause=cause), PassOn(event=Disconnected())]


def test_hello_comes_first() -> None:
    stream = StreamState(PATIENCE)
    assert advance(stream, Opened(), 100.0) == [SayHello()]
    assert (stream.connected, stream.wake_at) == (False, 115.0)


def test_a_welcome_is_contact_from_when_hello_was_said() -> None:
    stream = opened(100.0)
    assert advance(stream, WELCOME, 103.0) == [PassOn(event=Contact(sent_at=100.0)), TakeUp()]
    assert stream.connected


def test_an_answer_that_is_no_welcome_ends_the_stream() -> None:
    for event in (Heard(), PlanHeard(plan=PLAN), Acknowledged(sequence=1)):
        assert advance(opened(), event, 101.0) == left("Welcome is not the first answer")


def test_hello_is_answered_in_time_or_the_stream_is_left() -> None:
    stream = opened(100.0)
    assert advance(stream, StreamTimePassed(), 114.999) == []
    assert advance(stream, StreamTimePassed(), 115.0) == left("no answer to Hello within 15 s")
    assert stream.wake_at is None


def test_heartbeats_are_sent_and_counted() -> None:
    stream = welcomed(100.0)
    assert stream.wake_at == 110.0
    assert advance(stream, StreamTimePassed(), 109.999) == []
    assert advance(stream, StreamTimePassed(), 110.0) == [Beat(sequence=1, stream=1)]
    assert advance(stream, StreamTimePassed(), 120.0) == [Beat(sequence=2, stream=1)]


def test_an_acknowledgement_is_contact_from_when_the_heartbeat_was_sent() -> None:
    stream = welcomed(100.0)
    advance(stream, StreamTimePassed(), 110.0)
    assert advance(stream, Acknowledged(sequence=1), 118.0) == [PassOn(event=Contact(sent_at=110.0))]


def test_an_acknowledgement_counts_once_and_for_all_that_came_before_it() -> None:
    stream = welcomed(100.0)
    advance(stream, StreamTimePassed(), 110.0)
    advance(stream, StreamTimePassed(), 120.0)
    assert advance(stream, Acknowledged(sequence=2), 121.0) == [PassOn(event=Contact(sent_at=120.0))]
    assert advance(stream, Acknowledged(sequence=2), 122.0) == []
    assert advance(stream, Acknowledged(sequence=1), 122.0) == []


def test_an_acknowledgement_of_what_was_never_sent_says_nothing() -> None:
    assert advance(welcomed(), Acknowledged(sequence=7), 101.0) == []


def test_an_acknowledgement_of_another_stream_says_nothing() -> None:
    """Heartbeats count anew on each stream: that of the last one must not be taken for contact on this one."""
    stream = welcomed(100.0)
    advance(stream, StreamTimePassed(), 110.0)
    advance(stream, Broke(cause="cut"), 111.0)
    advance(stream, Opened(), 112.0)
    advance(stream, WELCOME, 112.0)
    assert advance(stream, Acknowledged(sequence=1), 113.0) == []


def test_a_coordinator_that_is_silent_for_a_lease_is_left() -> None:
    stream = welcomed(100.0)
    advance(stream, Heard(), 105.0)
    for at in (110.0, 120.0, 130.0):
        assert len(advance(stream, StreamTimePassed(), at)) == 1
    assert stream.wake_at == 135.0
    assert advance(stream, StreamTimePassed(), 135.0) == left("silent for 30 s")


def test_plans_are_passed_on_with_the_stream_on_which_they_came() -> None:
    stream = welcomed()
    advance(stream, Broke(cause="cut"), 101.0)
    advance(stream, Opened(), 102.0)
    advance(stream, WELCOME, 102.0)
    assert advance(stream, PlanHeard(plan=PLAN), 103.0) == [PassOn(event=PlanReceived(plan=PLAN, stream=2))]


def test_a_second_welcome_changes_nothing() -> None:
    assert advance(welcomed(), WELCOME, 101.0) == []


def test_what_comes_after_its_end_is_not_heard() -> None:
    stream = welcomed()
    assert advance(stream, Broke(cause="cut"), 101.0) == left("cut")
    for event in (PlanHeard(plan=PLAN), Acknowledged(sequence=0), Broke(cause="again"), StreamTimePassed()):
        assert advance(stream, event, 200.0) == []


def test_pauses_grow_while_streams_are_of_no_use_and_begin_anew_after_a_good_one() -> None:
    stream, at, pauses = StreamState(PATIENCE), 0.0, []
    for _ in range(20):
        advance(stream, Opened(), at)
        advance(stream, WELCOME, at)
        advance(stream, Broke(cause="dropped"), at + 0.5)
        pauses.append(stream.pause)
        at += 10.0
    assert pauses[0] > FIRST_PAUSE
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_PAUSE
    advance(stream, Opened(), at)
    advance(stream, Broke(cause="dropped"), at + 2.0)
    assert stream.pause == FIRST_PAUSE
