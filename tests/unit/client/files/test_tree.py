"""Which trees are believed, and which names never get to this machine's disk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.client.files.tree import (
    DEEPEST_TREE,
    InvalidTreeError,
    TreeEntry,
    beside_name,
    is_leftover,
    leads_out,
    listing_of,
)
from tests.unit.client.files.tree_values import ROOT, directory, file, link


def test_what_is_told_in_order_is_believed() -> None:
    told = [ROOT, directory("a"), file("a/with\nnewline"), link("a/l", "../b"), file("b")]
    assert list(listing_of(told, {}).entries.values()) == told[1:]


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "..", "../x", "a/../../x", "a//b", "./a", "a/.", "a/", "nul\0", "x" * 256, "a/" * 300 + "b"],
)
def test_a_path_that_leads_elsewhere_is_refused(path: str) -> None:
    above = [directory("a"), directory("a/.."), directory(".")] if not path.startswith("a/..") else [directory("a")]
    with pytest.raises(InvalidTreeError):
        listing_of([ROOT, *above[:1], file(path)], {})


@pytest.mark.parametrize(
    "told",
    [
        [],
        [file("a")],
        [ROOT, file("a/b")],
        [ROOT, link("a", "b"), file("a/b")],
        [ROOT, file("a"), file("a/b")],
        [ROOT, file("a"), file("a")],
        [ROOT, directory("a"), link("a", "/etc")],
        [file(""), file("a")],
    ],
    ids=[
        "nothing",
        "no root",
        "no directory",
        "behind a link",
        "in a file",
        "twice",
        "twice, a link",
        "root is a file",
    ],
)
def test_a_tree_that_cannot_be_is_refused(told: list[TreeEntry]) -> None:
    with pytest.raises(InvalidTreeError):
        listing_of(told, {})


def test_a_tree_is_no_deeper_than_it_may_be() -> None:
    names = ["/".join(["d"] * depth) for depth in range(1, DEEPEST_TREE + 3)]
    assert len(listing_of([ROOT, *map(directory, names[: DEEPEST_TREE + 1])], {}).entries) == DEEPEST_TREE + 1
    with pytest.raises(InvalidTreeError):
        listing_of([ROOT, *map(directory, names)], {})


@pytest.mark.parametrize(
    ("path", "target", "out"),
    [
        ("l", "a", False),
        ("l", "./a/b", False),
        ("a/b/l", "../../c", False),
        ("a/l", "..", False),
        ("l", "/etc/passwd", True),
        ("l", "..", True),
        ("a/l", "../../c", True),
        ("l", "a/../b", True),  # `a` may be a link, and then `..` is anywhere
        ("l", "", True),
    ],
)
def test_a_link_that_may_lead_out_is_found(path: str, target: str, out: bool) -> None:
    assert leads_out(link(path, target)) is out


@given(name=st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=255))
def test_a_file_has_a_name_that_can_be_while_it_is_written(name: str) -> None:
    beside = beside_name(name, "0123abcd")
    assert len(beside.encode("utf-8", "surrogateescape")) <= 255
    assert is_leftover(beside)
    assert beside != name
