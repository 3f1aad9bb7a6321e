"""Nodes that gather the same, step by step: whatever goes wrong, whoever is left has all pieces at the end."""

from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from muster.domain.data.sharing.piece_board import PieceBoard
from muster.domain.data.swarm import Swarm

NODES = [f"node-{number}" for number in range(5)]


@dataclass
class Fleet:
    """Boards of nodes that answer each other at once, or never again."""

    pieces: int
    cut: set[str] = field(default_factory=set)
    boards: dict[str, PieceBoard] = field(default_factory=dict)
    origin: Counter[int] = field(default_factory=Counter)
    """How often each piece left the origin."""

    def __post_init__(self) -> None:
        swarm = Swarm("tree", NODES)
        self.boards = {node: PieceBoard(swarm, node, self.pieces) for node in NODES}

    def step(self, node: str, source: str) -> None:
        """One node asks one source for one piece, and gets it, waits, or finds out that it will not come."""
        board = self.boards[node]
        piece = board.next_from(source)
        if piece is None:
            return
        if source == node:
            if node in self.cut:
                board.cut([node])
                board.failed(piece)
                return
            self.origin[piece] += 1
            board.arrived(piece)
            return
        asked = self.boards.get(source)
        if asked is None:
            board.gave_up(source)
        elif piece in asked.here:
            board.arrived(piece)
        else:
            asked.cut(board.cut_off - {source})
            board.failed(piece)

    def run(self, order: list[int], kill: str = "", at: int = 0) -> None:
        """Let all nodes ask all others, in an order that begins like this, until nobody lacks anything."""
        turns = [(node, source) for node in NODES for source in NODES]
        for number in range(200):
            if number == at:
                self.boards.pop(kill, None)
            for turn in sorted(range(len(turns)), key=lambda turn: (order[(turn + number) % len(order)], turn)):
                node, source = turns[turn]
                if node in self.boards:
                    self.step(node, source)
            if all(board.is_done for board in self.boards.values()):
                return


ORDERS = st.lists(st.integers(0, 9), min_size=1, max_size=30)


@given(st.integers(0, 12), ORDERS)
def test_nodes_of_which_none_is_gone_cost_the_origin_each_piece_once(pieces: int, order: list[int]) -> None:
    fleet = Fleet(pieces)
    fleet.run(order)
    assert all(board.is_done for board in fleet.boards.values())
    assert fleet.origin == Counter(range(pieces))


@given(st.integers(1, 12), ORDERS, st.sampled_from(NODES), st.integers(0, 5))
def test_the_others_end_when_a_node_is_gone(pieces: int, order: list[int], kill: str, at: int) -> None:
    fleet = Fleet(pieces)
    fleet.run(order, kill, at)
    assert all(board.is_done for board in fleet.boards.values())
    assert all(count <= 2 for count in fleet.origin.values())


@given(st.integers(1, 12), ORDERS, st.sets(st.sampled_from(NODES), max_size=4))
def test_nodes_without_a_way_to_the_origin_have_all_from_those_that_have_one(
    pieces: int, order: list[int], cut: set[str]
) -> None:
    fleet = Fleet(pieces, cut)
    fleet.run(order)
    assert all(board.is_done for board in fleet.boards.values())


def test_a_board_is_stuck_when_nobody_is_left_for_a_piece() -> None:
    board = PieceBoard(Swarm("tree", ["a", "b"]), "a", 2)
    assert not board.is_stuck
    board.gave_up("b")
    assert [board.source(0), board.source(1)] == ["a", "a"]
    board.cut(["a"])
    assert board.is_stuck


def test_what_another_node_has_comes_from_there_and_not_from_the_origin() -> None:
    board = PieceBoard(Swarm("tree", ["a", "b", "c"]), "a", 3, here=[0])
    board.held_by("c", [0, 1, 2, 99])
    assert [board.next_from("c"), board.next_from("c"), board.next_from("a")] == [1, 2, None]
    board.gave_up("c")
    assert {board.source(1), board.source(2)} <= {"a", "b"}


def test_a_piece_that_is_here_is_asked_for_no_more() -> None:
    board = PieceBoard(Swarm("tree", ["a"]), "a", 2)
    assert board.next_from("a") == 0
    board.arrived(1)
    assert board.next_from("a") is None
    board.failed(0)
    assert board.next_from("a") == 0
    board.arrived(0)
    assert board.is_done
