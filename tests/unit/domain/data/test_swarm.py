from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.data.swarm import MIB, MOST_NEIGHBOURS, ContentPieces, Swarm, piece_size, swarms_of
from muster.domain.data.tree import ContentObject

SIZES = st.lists(st.one_of(st.integers(0, 5), st.integers(0, 3 * MIB)), max_size=12)
NODES = st.sets(st.text("abcdef", min_size=1, max_size=4), min_size=1, max_size=12).map(sorted)


def objects_of(sizes: list[int]) -> list[ContentObject]:
    return [ContentObject(digest=f"{place:064x}", size=size) for place, size in enumerate(sizes)]


@given(SIZES)
def test_every_byte_of_every_object_is_in_one_piece(sizes: list[int]) -> None:
    objects = objects_of(sizes)
    pieces = ContentPieces(objects)
    covered: dict[str, int] = {}
    for piece in range(pieces.count):
        spans = list(pieces.spans(piece))
        assert sum(each.length for each in spans) == pieces.length(piece)
        for each in spans:
            assert each.length > 0
            assert each.offset == covered.get(each.digest, 0)
            covered[each.digest] = each.offset + each.length
    assert covered == {each.digest: each.size for each in objects if each.size}


@given(SIZES)
def test_an_object_is_touched_by_the_pieces_that_have_parts_of_it(sizes: list[int]) -> None:
    objects = [each for each in objects_of(sizes) if each.size]
    pieces = ContentPieces(objects)
    for place, each in enumerate(objects):
        having = [
            piece for piece in range(pieces.count) if any(span.digest == each.digest for span in pieces.spans(piece))
        ]
        assert list(pieces.touched_by(place)) == having


@pytest.mark.parametrize(
    ("total", "size"),
    [
        (0, MIB),
        (1024 * MIB, MIB),
        (1024 * MIB + 1, 4 * MIB),
        (64 * 1024 * MIB, 4 * MIB),
        (65 * 1024 * MIB, 16 * MIB),
        (257 * 1024 * MIB, 64 * MIB),
    ],
)
def test_larger_contents_have_larger_pieces(total: int, size: int) -> None:
    assert piece_size(total) == size


def test_contents_without_a_byte_have_no_pieces() -> None:
    assert ContentPieces(objects_of([0, 0])).count == 0


@given(NODES, st.integers(1, 50))
def test_every_piece_has_one_owner_whoever_asks(nodes: list[str], pieces: int) -> None:
    swarm, other = Swarm("tree", nodes), Swarm("tree", nodes[::-1])
    owned = [piece for node in nodes for piece in swarm.owned(node, pieces)]
    assert sorted(owned) == list(range(pieces))
    for node in nodes:
        assert all(other.owner(piece) == node for piece in swarm.owned(node, pieces))


@given(NODES, st.integers(1, 50))
def test_nodes_own_as_many_pieces_as_the_others_or_one_more(nodes: list[str], pieces: int) -> None:
    counts = [len(Swarm("tree", nodes).owned(node, pieces)) for node in nodes]
    assert max(counts) - min(counts) <= 1


@given(NODES, st.integers(0, 1000))
def test_all_nodes_are_asked_for_a_piece_its_owner_first(nodes: list[str], piece: int) -> None:
    swarm = Swarm("tree", nodes)
    assert swarm.heirs(piece)[0] == swarm.owner(piece)
    assert sorted(swarm.heirs(piece)) == nodes


def test_the_pieces_of_a_node_that_is_gone_are_spread_over_all_others() -> None:
    nodes = [f"node-{number}" for number in range(64)]
    swarm = Swarm("tree", nodes)
    gone = swarm.owned("node-7", 64 * 126)
    takers = Counter(swarm.heirs(piece)[1] for piece in gone)
    assert len(takers) >= 48  # of 63, where 126 pieces are spread by chance: 54 are expected
    assert max(takers.values()) <= 9


def test_different_trees_are_dealt_out_differently() -> None:
    nodes = [f"node-{number}" for number in range(8)]
    assert len({Swarm(f"tree-{number}", nodes).owner(0) for number in range(64)}) == 8


@given(st.integers(0, 400))
def test_a_large_gang_is_several_swarms_of_nearly_one_size(count: int) -> None:
    nodes = [str(number) for number in range(count)]
    swarms = swarms_of(nodes)
    assert [node for swarm in swarms for node in swarm] == nodes
    sizes = [len(swarm) for swarm in swarms] or [0]
    assert max(sizes) <= MOST_NEIGHBOURS + 1
    assert max(sizes) - min(sizes) <= 1
