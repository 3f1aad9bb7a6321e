"""Slurm's short lists of names: what is written short is read back as it was, in its order."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent.core.launching.dialects.node_list import compressed, expanded
from tests.unit.agent.core.node_names import lists


@given(lists)
@example(["n8", "n9", "n10", "n11"])
@example(["n08", "n09", "n10"])
@example(["n099", "n100", "n1000"])
@example(["n999999999", "n1000000000"])
@example(["n2", "n1", "n1"])
def test_a_list_comes_back_as_it_was(written: list[str]) -> None:
    assert expanded(compressed(written)) == written


@pytest.mark.parametrize(
    ("written", "short"),
    [
        (["gpu-0", "gpu-1", "gpu-2", "gpu-5"], "gpu-[0-2,5]"),
        (["n008", "n009", "n010"], "n[008-010]"),
        (["n9", "n10"], "n[9-10]"),
        (["n1", "n01"], "n[1,01]"),
        (["gpu-1"], "gpu-1"),
        (["login"], "login"),
        (["a1", "b1", "b2", "a2"], "a1,b[1-2],a2"),
        (["10.0.0.11", "10.0.0.12"], "10.0.0.[11-12]"),
        ([], ""),
    ],
)
def test_neighbours_that_count_up_are_one_range(written: list[str], short: str) -> None:
    assert compressed(written) == short


@given(st.integers(0, 5000), st.integers(1, 5000))
def test_a_fleet_whose_nodes_are_numbered_takes_one_range(first: int, number: int) -> None:
    short = compressed([f"n{each:05d}" for each in range(first, first + number)])
    assert len(short) <= len("n[00000-00000]")


def test_several_brackets_mean_every_combination() -> None:
    assert expanded("r[1-2]n[08-09],login") == ["r1n08", "r1n09", "r2n08", "r2n09", "login"]


@pytest.mark.parametrize("text", ["n[1-2", "n1]", "n[[1]]", "n[a-b]", "n[]"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        expanded(text)
