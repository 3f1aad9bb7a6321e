"""Whatever comes through the door is a packet that can be sent again, or refused."""

from hypothesis import example, given
from hypothesis import strategies as st

from agent.core.door.coding import decoded, encoded
from agent.core.door.packets import DoorError, Packet, Speaker
from tests.fuzz.effort import fuzzed
from tests.unit.agent.core.door_packets import said


@fuzzed
@given(raw=st.binary(max_size=400), speaker=st.sampled_from(Speaker))
@example(raw=b"G\x01\x00\x01\0\0\0\0\xff\xff", speaker=Speaker.CALLER)
def test_any_bytes_are_a_packet_or_refused(raw: bytes, speaker: Speaker) -> None:
    _is_sound(raw, speaker)


@fuzzed
@given(said=said, at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_a_packet_with_one_other_byte_is_a_packet_or_refused(said: tuple[Speaker, Packet], at: int, byte: int) -> None:
    speaker, packet = said
    raw = bytearray(encoded(packet))
    raw[at % len(raw)] = byte
    _is_sound(bytes(raw), speaker)


def _is_sound(raw: bytes, speaker: Speaker) -> None:
    try:
        packet = decoded(raw, speaker)
    except DoorError:
        return
    assert decoded(encoded(packet), speaker) == packet
