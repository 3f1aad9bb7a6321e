"""Every frame of a channel comes once and in order, whatever becomes of the streams."""

from collections import deque
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.attachments.channel import (
    CHANNEL_WINDOW,
    FRAME_OVERHEAD,
    Channel,
    ChannelConsumed,
    ChannelError,
    ChannelHello,
    ChannelMessage,
    NumberedFrame,
    frame_bytes,
)
from muster.domain.attachments.frame import AttachmentFrame, AttachmentInput, AttachmentInputEnd

WINDOW = 1024


@dataclass
class End:
    """One end: the channel, what its stream still has on the way to the other end, and what has been read here."""

    channel: Channel = field(default_factory=lambda: Channel(WINDOW))
    to_send: deque[AttachmentFrame] = field(default_factory=deque)
    way: deque[ChannelMessage] = field(default_factory=deque)
    waiting: deque[AttachmentFrame] = field(default_factory=deque)
    read: list[AttachmentFrame] = field(default_factory=list)

    def connect(self) -> None:
        self.way.clear()
        self.way.append(self.channel.hello())

    def produce(self) -> None:
        if self.to_send and self.channel.room:
            frame = self.to_send.popleft()
            self.way.extend(self.channel.send(frame))

    def hear(self, message: ChannelMessage) -> None:
        match message:
            case ChannelHello():
                self.way.extend(self.channel.greeted(message))
            case ChannelConsumed():
                self.channel.acknowledged(message)
            case NumberedFrame():
                if frame := self.channel.take(message):
                    self.waiting.append(frame)

    def deal(self) -> None:
        if self.waiting:
            frame = self.waiting.popleft()
            self.read.append(frame)
            self.way.extend(self.channel.consume(frame))

    def rest(self) -> None:
        self.way.extend(self.channel.tell())


def deliver(from_end: End, to_end: End) -> None:
    if from_end.way:
        to_end.hear(from_end.way.popleft())


def reconnect(one: End, other: End) -> None:
    one.connect()
    other.connect()


def pieces(sizes: list[int]) -> deque[AttachmentFrame]:
    return deque(AttachmentInput(data=b"%d " % number + b"x" * size) for number, size in enumerate(sizes))


STEPS = st.lists(
    st.tuples(st.booleans(), st.sampled_from(["produce", "deliver", "deal", "rest", "break"])), max_size=200
)
SIZES = st.lists(st.integers(0, 700), max_size=25)


@given(sizes=st.tuples(SIZES, SIZES), steps=STEPS)
def test_every_frame_comes_once_and_in_order_whatever_breaks(
    sizes: tuple[list[int], list[int]], steps: list[tuple[bool, str]]
) -> None:
    one, other = End(to_send=pieces(sizes[0])), End(to_send=pieces(sizes[1]))
    expected = [list(end.to_send) for end in (one, other)]
    reconnect(one, other)
    for first, step in steps:
        here, there = (one, other) if first else (other, one)
        match step:
            case "produce":
                here.produce()
            case "deliver":
                deliver(here, there)
            case "deal":
                here.deal()
            case "rest":
                here.rest()
            case _:
                reconnect(one, other)
    finish(one, other)
    assert [other.read, one.read] == expected
    assert one.channel.settled
    assert other.channel.settled


def finish(one: End, other: End) -> None:
    """Let both go on until there is nothing left to do; fails where they wait for each other."""
    for _ in range(2000):
        for here, there in ((one, other), (other, one)):
            here.produce()
            while here.way:
                deliver(here, there)
            there.deal()
        if not any((end.to_send or end.waiting or end.way) for end in (one, other)):
            one.rest()
            other.rest()
            if not one.way and not other.way:
                return
    pytest.fail("the two ends wait for each other")


@given(sizes=SIZES)
def test_no_more_is_kept_than_the_window_and_one_frame(sizes: list[int]) -> None:
    end = End(to_send=pieces(sizes))
    end.connect()
    frames = list(end.to_send)
    for _ in sizes:
        end.produce()
    sent = frames[: len(frames) - len(end.to_send)]
    assert sum(map(frame_bytes, sent[:-1])) < WINDOW


def test_two_ends_with_full_windows_go_on_as_soon_as_either_is_read() -> None:
    one, other = End(to_send=pieces([600] * 9)), End(to_send=pieces([600] * 9))
    reconnect(one, other)
    deliver(one, other)
    deliver(other, one)
    for _ in range(9):
        one.produce()
        other.produce()
    assert not one.channel.room
    assert not other.channel.room
    finish(one, other)
    assert len(one.read) == len(other.read) == 9


def test_nothing_is_sent_before_the_other_end_has_said_what_has_come() -> None:
    channel = Channel()
    channel.hello()
    assert channel.send(AttachmentInputEnd()) == []
    assert channel.greeted(ChannelHello(received=0)) == [NumberedFrame(number=1, frame=AttachmentInputEnd())]


def test_the_other_end_hears_that_a_quarter_of_the_window_is_consumed() -> None:
    channel = Channel(1000)
    channel.hello()
    channel.greeted(ChannelHello(received=0))
    small = AttachmentInput(data=b"x" * (150 - FRAME_OVERHEAD))
    for number in (1, 2):
        channel.take(NumberedFrame(number=number, frame=small))
    assert channel.consume(small) == []
    assert channel.consume(small) == [ChannelConsumed(number=2)]
    assert channel.tell() == []


def test_a_frame_that_has_come_before_is_not_given_again() -> None:
    channel = Channel()
    first = NumberedFrame(number=1, frame=AttachmentInputEnd())
    assert channel.take(first) == AttachmentInputEnd()
    assert channel.take(first) is None


def test_an_end_that_has_lost_frames_is_refused() -> None:
    with pytest.raises(ChannelError, match="frame 2 came after frame 0"):
        Channel().take(NumberedFrame(number=2, frame=AttachmentInputEnd()))


def test_an_end_that_says_more_than_can_be_is_refused() -> None:
    with pytest.raises(ChannelError, match="frame 1 has come there; 0 to 0 were sent last"):
        Channel().greeted(ChannelHello(received=1))
    with pytest.raises(ChannelError, match="frame 1 is consumed there; 0 was sent last"):
        Channel().acknowledged(ChannelConsumed(number=1))


def test_an_end_that_has_forgotten_what_it_has_consumed_is_refused() -> None:
    channel = Channel()
    channel.hello()
    channel.greeted(ChannelHello(received=0))
    channel.send(AttachmentInputEnd())
    channel.acknowledged(ChannelConsumed(number=1))
    with pytest.raises(ChannelError, match="frame 0 has come there; 1 to 1 were sent last"):
        channel.greeted(ChannelHello(received=0))


def test_a_window_is_a_mebibyte() -> None:
    channel = Channel()
    frame = AttachmentInput(data=b"x" * (CHANNEL_WINDOW // 4 - FRAME_OVERHEAD))
    for _ in range(3):
        channel.send(frame)
    assert channel.room
    channel.send(frame)
    assert not channel.room
