"""Packets of SFTP: put together from any pieces, and read as what was put into them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.client.files.packets import (
    LARGEST_ANSWER,
    FileAttributes,
    PacketError,
    PacketReader,
    SftpAnswer,
    SftpKind,
    Unpacker,
    extensions_of,
    names_of,
    packed_attributes,
    packed_number,
    packed_text,
    packet,
    status_of,
)

answers = st.lists(
    st.builds(
        lambda kind, number, body: SftpAnswer(kind=kind, id=number, body=body),
        st.sampled_from(SftpKind).map(int),
        st.integers(0, 2**32 - 1),
        st.binary(max_size=40),
    ),
    max_size=5,
)


@given(sent=answers, cuts=st.lists(st.integers(0, 300), max_size=8))
def test_packets_come_out_of_any_pieces(sent: list[SftpAnswer], cuts: list[int]) -> None:
    raw = b"".join(packet(SftpKind(each.kind), each.id, each.body) for each in sent)
    reader, got, last = PacketReader(), [], 0
    for cut in [*sorted(min(cut, len(raw)) for cut in cuts), len(raw)]:
        got += reader.feed(raw[last:cut])
        last = cut
    assert got == sent


@pytest.mark.parametrize("size", [0, 4, LARGEST_ANSWER + 1, 2**32 - 1])
def test_a_packet_of_an_impossible_size_is_refused_before_it_is_there(size: int) -> None:
    with pytest.raises(PacketError, match=f"{size} bytes"):
        PacketReader().feed(packed_number(size))


@given(
    attributes=st.builds(
        FileAttributes,
        size=st.none() | st.integers(0, 2**64 - 1),
        mode=st.none() | st.integers(0, 2**32 - 1),
        changed=st.none() | st.integers(0, 2**32 - 1),
    )
)
def test_attributes_come_out_as_they_went_in(attributes: FileAttributes) -> None:
    assert Unpacker(packed_attributes(attributes)).attributes() == attributes


@pytest.mark.parametrize(("changed", "kept"), [(-5, 0), (2**32 + 5, 2**32 - 1)])
def test_a_time_that_sftp_cannot_say_is_the_nearest_one(changed: int, kept: int) -> None:
    assert Unpacker(packed_attributes(FileAttributes(changed=changed))).attributes().changed == kept


def test_a_refusal_is_told_in_so_many_words() -> None:
    body = packed_number(4) + packed_text(b"\xff" * 5000) + packed_text(b"")
    status = status_of(SftpAnswer(kind=SftpKind.STATUS, id=7, body=body))
    assert status is not None
    assert (status.code, len(status.text)) == (4, 256)


def test_another_version_is_told() -> None:
    with pytest.raises(PacketError, match="version 6"):
        extensions_of(SftpAnswer(kind=SftpKind.VERSION, id=6, body=b""))


def test_more_names_than_a_packet_holds_are_refused() -> None:
    with pytest.raises(PacketError, match="too early"):
        names_of(SftpAnswer(kind=SftpKind.NAME, id=7, body=packed_number(2**32 - 1)))
