"""Turns at reading messages: bounds that always hold, and lines in which nobody is passed over."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from coordinator.rpc.admission.turns import Reading, Turns

READING = Reading(at_once=3, each=2, within=2.0, hurried=0.5, line=10.0)


def taken(*keys: str) -> Turns[str, int]:
    turns = Turns[str, int](READING)
    for key in keys:
        assert turns.take(key)
    return turns


def test_one_caller_has_only_so_many_turns_and_others_have_the_rest() -> None:
    turns = taken("a", "a")
    assert not turns.take("a")
    assert turns.take("b")
    assert not turns.take("c")


def test_who_comes_first_by_right_does_not_wait_for_others_but_for_oneself() -> None:
    turns = taken("a", "a", "b")
    assert turns.take("admin", first=True)
    assert turns.take("admin", first=True)
    assert not turns.take("admin", first=True)
    assert turns.leave("a") is None


def test_turns_go_round_among_callers_however_many_calls_each_has_in_line() -> None:
    turns = taken("x", "y", "z")
    for number, key in enumerate("aaabbc"):
        turns.wait(key, number)
    given_ = []
    for key in ("x", "y", "z"):
        following = turns.leave(key)
        assert following is not None
        given_.append(following)
    assert given_ == [("a", 0), ("b", 3), ("c", 5)]
    assert turns.leave("c") == ("a", 1)
    assert turns.leave("b") == ("b", 4)


def test_who_has_all_of_the_own_turns_waits_for_one_of_them() -> None:
    turns = taken("a", "a", "b")
    turns.wait("a", 1)
    turns.wait("c", 2)
    assert turns.leave("b") == ("c", 2)
    assert turns.leave("c") is None
    assert turns.leave("a") == ("a", 1)


def test_who_gives_up_is_given_no_turn() -> None:
    turns = taken("a", "b", "c")
    turns.wait("d", 1)
    turns.give_up("d", 1)
    turns.give_up("d", 1)
    assert turns.leave("a") is None


def test_a_message_must_come_sooner_while_others_wait() -> None:
    turns = taken("a", "b", "c")
    assert turns.patience == 2.0
    turns.wait("d", 1)
    assert turns.patience == 0.5


def test_without_a_hurry_a_message_has_as_long_as_ever() -> None:
    turns = Turns[str, int](Reading(at_once=1, each=1, within=60.0))
    assert turns.take("a")
    turns.wait("b", 1)
    assert turns.patience == 60.0


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["come", "end", "give up"])), max_size=60))
def test_whatever_comes_the_bounds_hold_and_no_turn_is_free_while_somebody_could_have_it(
    steps: list[tuple[str, str]],
) -> None:
    turns, reads, lines = Turns[str, int](READING), Counter[str](), dict[str, list[int]]()
    for number, (key, what) in enumerate(steps):
        if what == "come":
            if turns.take(key):
                reads[key] += 1
            else:
                turns.wait(key, number)
                lines.setdefault(key, []).append(number)
        elif what == "end" and reads[key]:
            reads[key] -= 1
            if (following := turns.leave(key)) is not None:
                whose, waiter = following
                assert lines[whose].pop(0) == waiter
                reads[whose] += 1
        elif what == "give up" and lines.get(key):
            turns.give_up(key, lines[key].pop())
        assert reads.total() <= READING.at_once
        assert max(reads.values(), default=0) <= READING.each
        if reads.total() < READING.at_once:
            assert [each for each, line in lines.items() if line and reads[each] < READING.each] == []
