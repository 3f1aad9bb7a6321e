"""The packets of the door as bytes: each comes out as it went in, and nothing else comes out."""

from dataclasses import replace
from ipaddress import ip_address

import pytest
from hypothesis import given

from agent.core.door.coding import decoded, encoded
from agent.core.door.packets import (
    DOOR_VERSION,
    LARGEST_DATA,
    LARGEST_PACKET,
    LONGEST_KEPT_NAME,
    LONGEST_REFUSAL,
    LONGEST_TICKET,
    CommandExited,
    CommandFailed,
    CommandKept,
    CommandSignal,
    CommandStarted,
    CommandWanted,
    ConnectionWanted,
    DoorError,
    FaultyPart,
    FilesWanted,
    GangCommandAsked,
    GangExit,
    GangInput,
    GangOutput,
    GangRefused,
    MainInputEnd,
    MainProgramExited,
    MainProgramShown,
    MainSignal,
    Packet,
    Speaker,
    StayAsked,
    Targets,
)
from tests.unit.agent.core.door_packets import said

ASKED = GangCommandAsked(targets=Targets.ONE, target="worker-1", words=("orted", "-x"), env=("A=b",), daemon=True)


@given(said)
def test_every_packet_comes_out_as_it_went_in(said: tuple[Speaker, Packet]) -> None:
    speaker, packet = said
    assert decoded(encoded(packet), speaker) == packet


@given(said)
def test_a_packet_that_is_cut_off_or_too_long_is_refused_or_another_packet(said: tuple[Speaker, Packet]) -> None:
    speaker, packet = said
    raw = encoded(packet)
    for changed in (*(raw[:size] for size in range(len(raw))), raw + b"\0"):
        try:
            assert decoded(changed, speaker) != packet
        except DoorError:
            continue


def test_a_gang_command_has_the_bytes_that_the_document_shows() -> None:
    head = bytes((DOOR_VERSION, 1, 1))
    target = b"\0\0\0\x08worker-1"
    words = b"\0\x02" + b"\0\0\0\x05orted" + b"\0\0\0\x02-x"
    assert encoded(ASKED) == b"G" + head + target + words + b"\0\x01" + b"\0\0\0\x03A=b"


def test_a_command_for_the_companion_has_the_bytes_that_the_document_shows() -> None:
    wanted = CommandWanted(number=7, words=("ls",), workdir="/w", terminal=True, daemon=True, rows=2, columns=3)
    assert encoded(wanted) == b"C\0\0\0\x07\x05\0\x02\0\x03\0\0\0\x02/w\0\0\0\0\0\x01\0\0\0\x02ls\0\0"


def test_a_kept_shell_has_the_bytes_that_the_document_shows() -> None:
    wanted = CommandWanted(number=7, words=(), terminal=True, shell=True, kept_name="a", rows=2, columns=3)
    assert encoded(wanted) == b"C\0\0\0\x07\x09\0\x02\0\x03\0\0\0\0\0\0\0\x01a\0\0\0\0"
    assert encoded(CommandKept(number=7, pid=9, name="a")) == b"T\0\0\0\x07\0\0\0\x09\0\0\0\x01a"


def test_a_failure_and_files_have_the_bytes_that_the_document_shows() -> None:
    failed = CommandFailed(number=7, errno=2, part=FaultyPart.DIRECTORY)
    assert encoded(failed) == b"F\0\0\0\x07\0\0\0\x02\x02"
    assert encoded(FilesWanted(number=7)) == b"L\0\0\0\x07"


def test_a_connection_has_the_bytes_that_the_document_shows() -> None:
    wanted = ConnectionWanted(number=7, address=ip_address("127.0.0.1"), port=8888)
    assert encoded(wanted) == b"N\0\0\0\x07\x04\x22\xb8\x7f\0\0\x01"


def test_a_main_program_has_the_bytes_that_the_document_shows() -> None:
    shown = MainProgramShown(ticket="ab", terminal=True, has_input=False, pid=7)
    assert encoded(shown) == b"A\x01\0\0\0\x02ab\x01\0\0\0\x07"
    assert encoded(replace(shown, terminal=False, has_input=True)) == b"A\x01\0\0\0\x02ab\x02\0\0\0\x07"
    assert [encoded(each) for each in (MainProgramExited(code=3), MainInputEnd(), MainSignal(number=2))] == [
        b"E\x03",
        b"H",
        b"K\x02",
    ]


@pytest.mark.parametrize("speaker", Speaker)
@pytest.mark.parametrize("raw", [b"", b"z", b"\xff" * 9], ids=["nothing", "unknown kind", "garbage"])
def test_what_is_no_packet_is_refused_whoever_sends_it(raw: bytes, speaker: Speaker) -> None:
    with pytest.raises(DoorError):
        decoded(raw, speaker)


@pytest.mark.parametrize(
    ("packet", "other"),
    [
        (ASKED, Speaker.COMPANION),
        (GangExit(code=0), Speaker.CALLER),
        (CommandStarted(number=1, pid=2), Speaker.CALLER),
        (StayAsked(ticket="x"), Speaker.AGENT_TO_COMPANION),
    ],
)
def test_no_side_may_send_the_packets_of_another(packet: Packet, other: Speaker) -> None:
    with pytest.raises(DoorError, match=f"no packet of the {other.value}"):
        decoded(encoded(packet), other)


@pytest.mark.parametrize(
    ("packet", "reason"),
    [
        (GangInput(data=b""), "0 bytes of data"),
        (GangOutput(data=bytes(LARGEST_DATA + 1)), "bytes of data"),
        (GangExit(code=256), "256 is not between"),
        (CommandExited(number=-1, code=0), "-1 is not between"),
        (StayAsked(ticket="a\0b"), "zero byte"),
        (StayAsked(ticket="\ud800"), "cannot be sent"),
        (CommandWanted(number=1, words=()), "no words"),
        (CommandWanted(number=1, words=("a", "b"), shell=True), "runs one line"),
        (CommandWanted(number=1, words=(), shell=True, kept_name="a"), "has no terminal"),
        (
            CommandWanted(number=1, words=(), shell=True, terminal=True, kept_name="x" * (LONGEST_KEPT_NAME + 1)),
            "longer than 64 bytes",
        ),
        (GangCommandAsked(targets=Targets.ALL, target="", words=("x" * LARGEST_PACKET,)), "a command of 128 KiB"),
    ],
)
def test_what_the_door_does_not_take_is_not_sent(packet: Packet, reason: str) -> None:
    with pytest.raises(DoorError, match=reason):
        encoded(packet)


@pytest.mark.parametrize(
    ("raw", "speaker", "reason"),
    [
        (bytes(LARGEST_PACKET + 1), Speaker.CALLER, "longer than"),
        (b"S\x02\0\0\0\0", Speaker.COMPANION, "version 2 of the door is not known"),
        (b"S\x01" + (LONGEST_TICKET + 1).to_bytes(4, "big"), Speaker.COMPANION, "is more than 128"),
        (b"G\x01\x08\x01", Speaker.CALLER, "is more than 7"),
        (b"G\x01\x00\x09" + b"\0" * 8, Speaker.CALLER, "names no way"),
        (b"G\x01\x00\x01" + b"\0" * 8, Speaker.CALLER, "no words"),
        (b"G\x01\x00\x01" + b"\xff\xff\xff\xff", Speaker.CALLER, "is more than"),
        (encoded(ASKED).replace(b"A=b", b"=Ab"), Speaker.CALLER, "NAME=VALUE"),
        (encoded(ASKED) + b"\0", Speaker.CALLER, "more than belongs to it"),
        (b"F" + bytes(8) + b"\4", Speaker.COMPANION, "4 names no part"),
        (b"T" + bytes(12), Speaker.COMPANION, "has no name"),
        (b"K\0", Speaker.CALLER, "0 is no signal"),
        (b"K\x41", Speaker.CALLER, "65 is more than 64"),
        (b"I", Speaker.CALLER, "0 bytes of data"),
        (encoded(CommandSignal(number=1, signal=9))[:-1], Speaker.AGENT_TO_COMPANION, "ends too early"),
    ],
)
def test_a_packet_that_cannot_be_meant_is_refused_with_the_reason(raw: bytes, speaker: Speaker, reason: str) -> None:
    with pytest.raises(DoorError, match=reason):
        decoded(raw, speaker)


def test_a_refusal_that_is_too_long_is_cut_at_a_whole_character() -> None:
    packet = decoded(encoded(GangRefused(text="ä" * LONGEST_REFUSAL)), Speaker.AGENT_TO_CALLER)
    assert packet == GangRefused(text="ä" * (LONGEST_REFUSAL // 2))
