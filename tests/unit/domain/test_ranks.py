import pytest

from muster.domain.gangs.ranks import MOST_NAMED_RANKS, parse_ranks


@pytest.mark.parametrize(
    ("text", "ranks"),
    [("0", {0}), ("0,2-3", {0, 2, 3}), (" 1 , 1-2", {1, 2}), ("10-10", {10}), (f"0-{MOST_NAMED_RANKS - 1}", None)],
)
def test_ranks_are_numbers_and_ranges(text: str, ranks: set[int] | None) -> None:
    assert parse_ranks(text) == (set(range(MOST_NAMED_RANKS)) if ranks is None else ranks)


@pytest.mark.parametrize("text", ["", ",", "0,", "a", "-1", "1-", "0x1", "1 2", "1" * 10, "²"])
def test_another_text_is_no_list_of_ranks(text: str) -> None:
    with pytest.raises(ValueError, match="is no list of ranks; write it like 0,2-3"):
        parse_ranks(text)


@pytest.mark.parametrize("text", ["3-2", f"0-{MOST_NAMED_RANKS}", "0-6000,0-6000"])
def test_a_range_goes_up_and_not_too_far(text: str) -> None:
    with pytest.raises(ValueError, match="is no range of ranks; write it like 2-3"):
        parse_ranks(text)
