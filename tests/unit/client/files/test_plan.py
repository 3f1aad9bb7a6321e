"""What is sent, removed, left alone and asked about, from two listings."""

from copy import deepcopy
from dataclasses import replace

import pytest
from hypothesis import given

from muster.client.files.plan import Clash, ClashKind, NotCopied, PlanRules, TreePlan, plan_of, settled
from muster.client.files.tree import EntryKind, TreeEntry
from tests.unit.client.files.tree_values import MemoryTree, directory, file, link, listing, trees

SYNC = PlanRules()
EVERYTHING = PlanRules(everything=True)
ALIKE = PlanRules(delete=True, overwrite=True)


def paths(entries: tuple[TreeEntry, ...]) -> list[str]:
    return [each.path for each in entries]


def content(entry: TreeEntry) -> tuple[int, int]:
    """What a file of these tests holds: two of one size and of neighbouring times may hold the same."""
    return entry.size, entry.changed // 2


def decided(source: MemoryTree, target: MemoryTree, rules: PlanRules) -> TreePlan:
    plan = plan_of(source.listing(), target.listing(), rules)
    same = {doubt.source.path for doubt in plan.doubts if content(doubt.source) == content(doubt.target)}
    return settled(plan, same.__contains__, rules)


def test_what_is_not_there_is_made_from_above_and_finished_from_below() -> None:
    source = listing(directory("a"), directory("a/b"), file("a/b/c"), link("l", "a"))
    plan = plan_of(source, None, SYNC)
    assert paths(plan.directories) == ["", "a", "a/b"]
    assert paths(plan.finished) == ["a/b", "a", ""]
    assert (paths(plan.files), paths(plan.links)) == (["a/b/c"], ["l"])


def test_a_file_of_the_same_size_and_time_is_left_alone() -> None:
    plan = plan_of(listing(file("a", size=5, changed=7)), listing(file("a", size=5, changed=7)), SYNC)
    assert plan.is_nothing
    assert plan.unchanged == 1


def test_parts_of_a_second_make_no_difference() -> None:
    there = file("a")
    here = replace(there, changed_ns=there.changed_ns + 999_999_999)
    assert plan_of(listing(here), listing(there), SYNC).is_nothing


def test_a_file_of_another_time_is_in_doubt_until_its_content_is_known() -> None:
    plan = plan_of(listing(file("a", changed=9)), listing(file("a", changed=8)), SYNC)
    assert (paths(plan.files), len(plan.doubts)) == ([], 1)
    assert paths(settled(plan, lambda _: True, SYNC).adjusted) == ["a"]
    assert paths(settled(plan, lambda _: False, SYNC).files) == ["a"]


def test_a_file_that_is_newer_at_the_target_is_asked_about() -> None:
    source, target = listing(file("a", size=1, changed=3)), listing(file("a", size=2, changed=4))
    newer = (Clash(path="a", kind=ClashKind.NEWER),)
    assert plan_of(source, target, SYNC).clashes == newer
    assert paths(plan_of(source, target, ALIKE).files) == ["a"]
    assert paths(plan_of(source, target, EVERYTHING).files) == ["a"]


def test_a_newer_file_of_the_same_size_is_asked_about_where_it_holds_something_else() -> None:
    plan = plan_of(listing(file("a", changed=3)), listing(file("a", changed=4)), SYNC)
    assert settled(plan, lambda _: False, SYNC).clashes == (Clash(path="a", kind=ClashKind.NEWER),)
    assert settled(plan, lambda _: True, SYNC).clashes == ()


def test_a_directory_gives_way_to_a_file_only_when_it_is_told_to() -> None:
    source, target = listing(file("a")), listing(directory("a"), file("a/b"))
    in_the_way = (Clash(path="a", kind=ClashKind.IN_THE_WAY),)
    assert plan_of(source, target, SYNC).clashes == in_the_way
    assert plan_of(source, target, EVERYTHING).clashes == in_the_way
    assert paths(plan_of(source, target, ALIKE).cleared) == ["a/b", "a"]


@pytest.mark.parametrize("rules", [SYNC, ALIKE, EVERYTHING])
def test_a_device_at_the_target_is_never_replaced(rules: PlanRules) -> None:
    device = TreeEntry(path="a", kind=EntryKind.OTHER)
    for each in (file("a"), directory("a"), link("a", "b")):
        assert plan_of(listing(each), listing(device), rules).clashes == (Clash(path="a", kind=ClashKind.IN_THE_WAY),)


def test_a_link_stands_in_the_way_of_a_directory() -> None:
    plan = plan_of(listing(directory("a"), file("a/b")), listing(link("a", "elsewhere")), EVERYTHING)
    assert plan.clashes == (Clash(path="a", kind=ClashKind.IN_THE_WAY),)


def test_links_that_lead_out_and_devices_are_left_out_and_named() -> None:
    source = listing(link("out", "../x"), TreeEntry(path="pipe", kind=EntryKind.OTHER))
    plan = plan_of(source, listing(file("out"), file("pipe")), ALIKE)
    assert plan.left_out == (
        NotCopied(path="out", why="leads out of the directory, to ../x"),
        NotCopied(path="pipe", why="neither a file nor a directory nor a link"),
    )
    assert plan.is_nothing


def test_what_only_the_target_has_is_removed_on_demand_alone() -> None:
    target = listing(file("a"), directory("d"), file("d/e"))
    assert plan_of(listing(file("a")), target, SYNC).removed == ()
    assert paths(plan_of(listing(file("a")), target, ALIKE).removed) == ["d/e", "d"]


def test_nothing_is_removed_where_the_source_could_not_be_looked_at() -> None:
    source = listing(directory("d"), troubles={"d": "permission denied"})
    target = listing(directory("d"), file("d/e"), file("f"))
    plan = plan_of(source, target, ALIKE)
    assert paths(plan.removed) == ["f"]
    assert plan.unread == (NotCopied(path="d", why="permission denied"),)


def test_a_directory_that_holds_ignored_files_is_not_removed() -> None:
    target = replace(listing(directory("d"), file("d/e")), holding_ignored=frozenset({"d"}))
    assert paths(plan_of(listing(), target, ALIKE).removed) == ["d/e"]


def test_what_was_being_written_is_not_sent_on() -> None:
    assert plan_of(listing(file(".a.muster-0123abcd")), listing(), SYNC).is_nothing


@given(source=trees, target=trees)
def test_after_it_the_target_is_like_the_source(source: MemoryTree, target: MemoryTree) -> None:
    target.carry_out(decided(source, target, ALIKE))
    assert target.listing() == source.listing()


@given(source=trees, target=trees)
def test_a_second_time_there_is_nothing_to_do(source: MemoryTree, target: MemoryTree) -> None:
    plan = decided(source, target, SYNC)
    if not plan.clashes:
        target.carry_out(plan)
        assert decided(source, target, SYNC).is_nothing


@given(source=trees, target=trees)
def test_nothing_is_lost_that_nobody_gave_up(source: MemoryTree, target: MemoryTree) -> None:
    before, plan = deepcopy(target.entries), decided(source, target, SYNC)
    if plan.clashes:
        return
    target.carry_out(plan)
    assert target.entries.keys() == before.keys() | source.entries.keys()
    for path, entry in before.items():
        if entry.kind is EntryKind.DIRECTORY or path not in source.entries:
            assert target.entries[path].kind is entry.kind
        elif entry.kind is EntryKind.FILE and content(target.entries[path]) != content(entry):
            assert source.entries[path].kind is EntryKind.LINK or source.entries[path].changed >= entry.changed


@given(source=trees, target=trees)
def test_a_copy_sends_every_file_and_removes_nothing(source: MemoryTree, target: MemoryTree) -> None:
    plan = decided(source, target, EVERYTHING)
    files = sorted(path for path, each in source.entries.items() if each.kind is EntryKind.FILE)
    assert sorted(paths(plan.files)) == files
    assert plan.removed == plan.cleared == ()
