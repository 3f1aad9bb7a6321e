"""Contents that come in pieces on the disk, and how much of them a node gives away."""

from hashlib import sha256
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent.swarm.parts import ContentParts
from agent.swarm.serving import bits_of, pieces_of
from agent.swarm.shelf import PeerRate
from muster.domain.data.tree import ContentObject

MIB = 1024 * 1024
CONTENTS = [b"a" * 10, b"b" * (MIB + 5), b"c" * 7]
OBJECTS = [ContentObject(digest=sha256(each).hexdigest(), size=len(each)) for each in CONTENTS]
JOINED = b"".join(CONTENTS)


def parts(path: Path, whole: dict[str, Path] | None = None) -> ContentParts:
    return ContentParts(path / "x.pieces", OBJECTS, (whole or {}).get)


def fill(of: ContentParts, piece: int, content: bytes = JOINED) -> None:
    data = content[piece * MIB : (piece + 1) * MIB]
    for offset in range(0, len(data), 300_000):
        of.write(piece, offset, data[offset : offset + 300_000])
    of.note(piece)


def kept(path: Path) -> dict[str, Path]:
    """Where objects lie that were taken over."""
    return {each.digest: path / "kept" / each.digest for each in OBJECTS}


def test_pieces_in_any_order_become_the_objects(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    of = parts(tmp_path)
    for piece in (1, 0):
        fill(of, piece)
    assert of.wrong() == []
    assert of.read(0, 8, 9) == JOINED[8:17]
    of.settle(lambda digest, path: path.replace(kept(tmp_path)[digest]))
    assert [kept(tmp_path)[each.digest].read_bytes() for each in OBJECTS] == CONTENTS
    assert of.read(1, 3, 9) == JOINED[MIB + 3 : MIB + 12]
    assert not (tmp_path / "x.pieces").exists()


def test_pieces_that_came_count_for_the_next_try(tmp_path: Path) -> None:
    fill(parts(tmp_path), 1)
    assert parts(tmp_path).here == {1}
    with (tmp_path / "x.pieces" / "have").open("a") as file:
        file.write("0")  # torn
    assert parts(tmp_path).here == {1}


def test_pieces_count_no_more_once_the_machine_was_started_again(tmp_path: Path) -> None:
    fill(parts(tmp_path), 1)
    have = tmp_path / "x.pieces" / "have"
    have.write_text("another start\n1\n")
    assert parts(tmp_path).here == set()


def test_pieces_of_objects_that_are_here_are_not_to_be_fetched(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(CONTENTS[1])
    (tmp_path / "c").write_bytes(CONTENTS[2])
    of = parts(tmp_path, {OBJECTS[1].digest: tmp_path / "b", OBJECTS[2].digest: tmp_path / "c"})
    assert of.here == {1}
    assert of.read(1, 0, 12) == JOINED[MIB : MIB + 12]


def test_an_object_with_other_bytes_is_found_with_its_pieces(tmp_path: Path) -> None:
    of = parts(tmp_path)
    fill(of, 0, b"x" + JOINED[1:])
    fill(of, 1)
    assert of.wrong() == [OBJECTS[0].digest]
    assert list(of.touched_by(OBJECTS[0].digest)) == [0]
    of.forget([0])
    assert parts(tmp_path).here == {1}


@given(st.sets(st.integers(0, 40)), st.integers(0, 41))
def test_bits_say_which_pieces_are_there(pieces: set[int], count: int) -> None:
    there = {piece for piece in pieces if piece < count}
    assert set(pieces_of(bits_of(there, count), count)) == there


def test_who_gives_more_than_the_rate_waits() -> None:
    rate = PeerRate(100)
    assert [rate.pause(50, now=10.0), rate.pause(50, now=10.0), rate.pause(50, now=12.0)] == [0.0, 0.5, 0.0]
    assert PeerRate(None).pause(10**9, now=0.0) == 0.0
