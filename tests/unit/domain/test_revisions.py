"""What has changed, in order: readers that stop anywhere know the same in the end."""

from hypothesis import given
from hypothesis import strategies as st

from muster.domain.revisions import Revisions

_changes = st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=30)


def noted(revisions: Revisions[str], key: str, *, there: bool) -> None:
    if there:
        revisions.note(key, "red")
    else:
        revisions.note_gone(key)


def learn(known: set[str], revisions: Revisions[str], since: int) -> int:
    """What a reader knows once it has heard what changed since it heard last."""
    for each in revisions.since(since):
        if each.there:
            known.add(each.key)
        else:
            known.discard(each.key)
    return revisions.newest


@given(_changes, st.sets(st.integers(0, 30)))
def test_whoever_asks_now_and_then_knows_what_is_there(changes: list[tuple[str, bool]], asks: set[int]) -> None:
    revisions, there, known, since = Revisions[str](), set[str](), set[str](), 0
    for place, (key, is_there) in enumerate(changes):
        noted(revisions, key, there=is_there)
        there = there | {key} if is_there else there - {key}
        if place in asks:
            since = learn(known, revisions, since)
    learn(known, revisions, since)
    assert known == there


@given(_changes)
def test_each_thing_is_told_once_at_its_newest_change(changes: list[tuple[str, bool]]) -> None:
    revisions = Revisions[str]()
    for key, is_there in changes:
        noted(revisions, key, there=is_there)
    told = revisions.since(0)
    assert len({each.key for each in told}) == len(told)
    assert [each.revision for each in told] == sorted({each.revision for each in told})
    assert all(revisions.since(each.revision) == told[place + 1 :] for place, each in enumerate(told))


def test_what_was_never_there_is_not_gone() -> None:
    revisions = Revisions[str]()
    revisions.note_gone("a")
    assert (revisions.since(0), revisions.newest) == ([], 0)


def test_a_reader_that_missed_more_than_is_kept_of_what_is_gone_can_tell() -> None:
    revisions = Revisions[str](gone_kept=1)
    for key in "ab":
        revisions.note(key, "red")
    for key in "ab":
        revisions.note_gone(key)
    assert [each.key for each in revisions.since(0)] == ["b"]
    assert revisions.complete_from == 3


def test_what_is_not_there_any_more_can_be_noted_all_at_once() -> None:
    revisions = Revisions[str]()
    for key in "abc":
        revisions.note(key, "red")
    revisions.keep_only("b".__contains__)
    assert [(each.key, each.there) for each in revisions.since(3)] == [("a", False), ("c", False)]
    assert "b" in revisions


def test_who_follows_the_count_of_somebody_else_stands_where_that_does() -> None:
    revisions = Revisions[str]()
    revisions.note("a", "red", 7)
    revisions.note("b", "red", 7)
    revisions.move_to(9, 4)
    assert (revisions.newest, revisions.complete_from) == (9, 4)
    assert [each.revision for each in revisions.since(6)] == [7, 7]
    assert revisions.since(7) == []
