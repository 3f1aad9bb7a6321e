"""Whatever a server of files sends is an answer that can be dealt with, or refused in a way that is foreseen."""

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

from muster.client.files.packets import (
    PacketError,
    PacketReader,
    SftpAnswer,
    SftpKind,
    Unpacker,
    extensions_of,
    names_of,
    packed_number,
    status_of,
)
from muster.client.files.remote_listing import entries_of
from muster.client.files.transfer_error import FilesLostError
from muster.client.files.tree import InvalidTreeError, TreeEntry, listing_of
from tests.fuzz.effort import fuzzed

KINDS = st.sampled_from(SftpKind).map(int) | st.integers(0, 255)
PATHS = st.text("ab/.\0\udcff", max_size=12)


@fuzzed
@given(pieces=st.lists(st.binary(max_size=200), max_size=5))
def test_any_bytes_are_packets_or_refused(pieces: list[bytes]) -> None:
    reader = PacketReader()
    with suppress(PacketError):
        for piece in pieces:
            for answer in reader.feed(piece):
                _is_dealt_with(answer)


@fuzzed
@given(kind=KINDS, body=st.binary(max_size=300))
def test_any_answer_is_dealt_with_or_refused(kind: int, body: bytes) -> None:
    _is_dealt_with(SftpAnswer(kind=kind, id=3, body=body))


@fuzzed
@given(count=st.integers(0, 2**32 - 1), body=st.binary(max_size=300))
def test_any_list_is_dealt_with_or_refused(count: int, body: bytes) -> None:
    _is_dealt_with(SftpAnswer(kind=SftpKind.EXTENDED_REPLY, id=3, body=packed_number(count % 5) + body))
    _is_dealt_with(SftpAnswer(kind=SftpKind.NAME, id=3, body=packed_number(count) + body))


@fuzzed
@given(told=st.lists(st.builds(TreeEntry, path=PATHS, kind=st.sampled_from(["file", "directory", "link"])), max_size=6))
def test_no_path_of_a_tree_leads_out_of_it(told: list[TreeEntry]) -> None:
    with suppress(InvalidTreeError):
        for path in listing_of(told, {}).entries:
            names = path.split("/")
            assert not {"", ".", ".."} & set(names)
            assert "\0" not in path


def _is_dealt_with(answer: SftpAnswer) -> None:
    for read in (status_of, extensions_of, names_of):
        with suppress(PacketError):
            read(answer)
    with suppress(PacketError):
        Unpacker(answer.body).attributes()
    with suppress(FilesLostError, InvalidTreeError):
        for entry in entries_of(answer, {}):
            assert entry.size >= 0
