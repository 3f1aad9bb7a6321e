import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.data.pattern import (
    InputLayout,
    NamePatternError,
    name_pattern,
    placed,
    split_among,
)

NAMES = st.lists(st.text("ab.", min_size=1, max_size=3), min_size=1, max_size=4).map("/".join)
PATTERNS = st.lists(st.sampled_from(["**", "*", "?", "a", "*.b", "a*", "*a*b*", "?b"]), min_size=1, max_size=4).map(
    "/".join
)


def as_regular_expression(pattern: str) -> str:
    """The same pattern, written in another way, which may be slow."""
    segments = pattern.split("/")
    found = ""
    for place, segment in enumerate(segments):
        last = place == len(segments) - 1
        if segment == "**":
            found += ".+" if last else "(?:[^/]+/)*"
        else:
            found += re.escape(segment).replace(r"\*", "[^/]*").replace(r"\?", "[^/]") + ("" if last else "/")
    return found


@given(PATTERNS, NAMES)
def test_a_pattern_matches_as_its_regular_expression_does(pattern: str, name: str) -> None:
    assert name_pattern(pattern).matches(name) == (re.fullmatch(as_regular_expression(pattern), name) is not None)


@given(PATTERNS, NAMES, st.sampled_from(InputLayout))
def test_what_is_matched_lies_at_the_end_of_its_name(pattern: str, name: str, layout: InputLayout) -> None:
    found = name_pattern(pattern)
    if found.matches(name):
        assert name.startswith(found.fixed)
        assert name.endswith(found.place(name, layout))


@pytest.mark.parametrize(
    ("pattern", "name", "tail", "flat"),
    [
        ("imagenet/train-*.tar", "imagenet/train-001.tar", "train-001.tar", "train-001.tar"),
        ("sets/*/train/**", "sets/a/train/x/y.bin", "a/train/x/y.bin", "y.bin"),
        ("sets/", "sets/a/b", "a/b", "b"),
        ("sets/a/b.bin", "sets/a/b.bin", "b.bin", "b.bin"),
        ("**/*.pt", "model.pt", "model.pt", "model.pt"),
    ],
)
def test_files_lie_where_their_layout_says(pattern: str, name: str, tail: str, flat: str) -> None:
    found = name_pattern(pattern)
    assert found.matches(name)
    assert found.place(name, InputLayout.TAIL) == tail
    assert found.place(name, InputLayout.FLAT) == flat
    assert found.place(name, InputLayout.FULL) == name


@pytest.mark.parametrize(
    ("pattern", "name"), [("sets/", "sets"), ("a/**", "a"), ("a/*", "a/b/c"), ("a?", "a/"), ("*.pt", "x/y.pt")]
)
def test_wildcards_do_not_cross_their_segment(pattern: str, name: str) -> None:
    assert not name_pattern(pattern).matches(name)


def test_a_pattern_with_many_wildcards_is_answered_at_once_where_a_regular_expression_is_not() -> None:
    pattern = name_pattern("/".join(["**", "*a" * 40 + "b"] * 5))
    assert not pattern.matches("/".join(["a" * 200] * 5))


@pytest.mark.parametrize("text", ["", "a" * 4097, "**.pt", "a/b**/c", "***"])
def test_a_pattern_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(NamePatternError):
        name_pattern(text)


def test_two_files_at_one_path_are_an_error_that_names_both() -> None:
    pattern = name_pattern("sets/**")
    with pytest.raises(NamePatternError, match=r"'sets/a/x' and 'sets/b/x' would both lie at 'x'"):
        placed([(pattern, "sets/a/x"), (pattern, "sets/b/x")], InputLayout.FLAT)


def test_a_file_where_another_one_needs_a_directory_is_an_error_that_names_both() -> None:
    with pytest.raises(NamePatternError, match="'b/model' and 'a/model/x'"):
        placed([(name_pattern("a/**"), "a/model/x"), (name_pattern("b/*"), "b/model")], InputLayout.TAIL)


def test_a_name_that_two_patterns_find_is_one_file() -> None:
    assert placed([(name_pattern("a/*"), "a/x"), (name_pattern("a/x"), "a/x")], InputLayout.TAIL) == {"x": "a/x"}


@given(st.lists(st.text(), max_size=20), st.integers(1, 8))
def test_every_file_goes_to_one_rank_and_ranks_differ_by_one_file_at_most(names: list[str], ranks: int) -> None:
    parts = [split_among(names, rank, ranks) for rank in range(ranks)]
    assert sorted(name for part in parts for name in part) == sorted(names)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
