import json
import posixpath
from hashlib import sha256
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.data.tree import (
    ContentEntry,
    ContentKind,
    ContentTree,
    MalformedTreeError,
    content_tree,
    link_leads_out,
    read_content_tree,
)
from tests.unit.domain.data.content_trees import NAMES, entries, file_of, link_to

OF_A = sha256(b"a").hexdigest()


def test_the_form_is_one_json_array_a_line_in_the_order_of_the_bytes_of_the_paths() -> None:
    tree = content_tree(
        [
            file_of("é.py", b"a"),
            file_of("train.py", b"a"),
            file_of("bin/run", b"a", ContentKind.PROGRAM),
            link_to("latest", "bin"),
        ]
    )
    assert tree.form.decode() == (
        f'["bin/run","x",1,"{OF_A}"]\n["latest","l",0,"bin"]\n["train.py","-",1,"{OF_A}"]\n["é.py","-",1,"{OF_A}"]\n'
    )
    assert tree.digest == sha256(tree.form).hexdigest()


def test_files_that_hold_the_same_are_fetched_once() -> None:
    tree = content_tree([file_of("a", b"same"), file_of("b", b"same"), file_of("c", b"other"), link_to("d", "a")])
    assert [each.size for each in tree.objects] == [4, 5]
    assert tree.size == 13


def test_a_tree_without_entries_has_a_name_too() -> None:
    assert read_content_tree(b"") == ContentTree()
    assert ContentTree().digest == sha256(b"").hexdigest()


@given(entries())
def test_a_tree_is_read_from_its_form_as_it_was(found: list[ContentEntry]) -> None:
    tree = content_tree(found)
    assert read_content_tree(tree.form) == tree


@given(entries())
def test_the_form_is_json_without_spaces_and_with_letters_as_they_are(found: list[ContentEntry]) -> None:
    tree = content_tree(found)
    said = [[each.path, each.kind.value, each.size, each.content] for each in tree.entries]
    lines = [json.dumps(each, ensure_ascii=False, separators=(",", ":")) + "\n" for each in said]
    assert tree.form.decode() == "".join(lines)


@given(entries(), st.randoms(use_true_random=False))
def test_the_order_in_which_files_are_found_changes_nothing(found: list[ContentEntry], chance: Random) -> None:
    other = list(found)
    chance.shuffle(other)
    assert content_tree(found).digest == content_tree(other).digest


@given(entries(), entries())
def test_trees_that_differ_have_different_names(first: list[ContentEntry], second: list[ContentEntry]) -> None:
    one, other = content_tree(first), content_tree(second)
    assert (one == other) == (one.digest == other.digest)


@given(st.lists(st.one_of(NAMES, st.sampled_from(["..", ".", ""])), max_size=6), st.integers(0, 3), st.booleans())
def test_no_link_of_a_tree_leads_out_of_it(segments: list[str], depth: int, absolute: bool) -> None:
    path = "/".join([*"abc"[:depth], "link"])
    target = ("/" if absolute else "") + "/".join(segments)
    if not link_leads_out(path, target):
        where = posixpath.normpath(posixpath.join("/tree", posixpath.dirname(path), target))
        assert where == "/tree" or where.startswith("/tree/")


def test_a_link_does_not_go_up_behind_a_name_that_may_be_a_link_itself() -> None:
    assert link_leads_out("a/link", "other/../..")
    assert link_leads_out("link", "other/..")
    assert not link_leads_out("a/link", "../other")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("", "no path within a directory"),
        ("/etc/passwd", "no path within a directory"),
        ("a//b", "no path within a directory"),
        ("../a", "no path within a directory"),
        ("a/./b", "no path within a directory"),
        ("a\nb", "control characters"),
        ("a\x00", "control characters"),
        ("a\udcff", "no UTF-8"),
        ("a" * 256, "at most 255 bytes"),
        ("a/" * 2048 + "a", "at most 4095"),
    ],
)
def test_a_path_that_no_tree_can_have_is_refused(path: str, said: str) -> None:
    with pytest.raises(MalformedTreeError, match=said):
        content_tree([file_of(path, b"a")])


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([file_of("a", b"a"), file_of("a", b"b")], "twice"),
        ([file_of("a", b"a"), file_of("a/b", b"b")], "no directory"),
        ([file_of("a", b"a"), file_of("a.b", b""), file_of("a/b", b"b")], "no directory"),
        ([link_to("a", "b"), file_of("a/b", b"b")], "no directory"),
        ([link_to("a", "/etc")], "not in the tree"),
        ([link_to("a", "../b")], "not in the tree"),
        ([link_to("a", "b\n")], "no path"),
        ([ContentEntry(path="a", kind=ContentKind.FILE, size=-1, content=OF_A)], "no size"),
        ([ContentEntry(path="a", kind=ContentKind.FILE, size=1, content=OF_A.upper())], "no SHA-256"),
        ([ContentEntry(path="a", kind=ContentKind.FILE, size=1, content="../../objects")], "no SHA-256"),
        (
            [file_of("a", b"a"), ContentEntry(path="b", kind=ContentKind.FILE, size=2, content=OF_A)],
            "two sizes",
        ),
    ],
)
def test_entries_that_cannot_be_one_directory_are_refused(found: list[ContentEntry], said: str) -> None:
    with pytest.raises(MalformedTreeError, match=said):
        content_tree(found)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (f'["a","-",1,"{OF_A}"]', "not whole"),
        ("[\n", "line 1 of the tree is no JSON"),
        ("[" * 100_000 + "\n", "line 1 of the tree is no JSON"),
        ('["a","-",1]\n', "line 1 of the tree is no"),
        (f'["a","d",1,"{OF_A}"]\n', "line 1 of the tree is no"),
        (f'["a",["-"],1,"{OF_A}"]\n', "line 1 of the tree is no"),
        (f'["a","-",true,"{OF_A}"]\n', "line 1 of the tree is no"),
        (f'["a","-",1.0,"{OF_A}"]\n', "line 1 of the tree is no"),
        (f'["b","-",1,"{OF_A}"]\n["a","-",1,"{OF_A}"]\n', "out of order"),
        (f'["a", "-", 1, "{OF_A}"]\n', "canonical"),
        (f'["\\u0061","-",1,"{OF_A}"]\n', "canonical"),
    ],
)
def test_a_form_that_is_not_canonical_is_refused(form: str, said: str) -> None:
    with pytest.raises(MalformedTreeError, match=said):
        read_content_tree(form.encode())


@given(st.binary(max_size=80))
def test_any_bytes_are_a_tree_or_refused(form: bytes) -> None:
    try:
        tree = read_content_tree(form)
    except MalformedTreeError:
        return
    assert tree.form == form
