"""The pool of a node."""

from datetime import timedelta

import pytest

from muster.domain.fleet.pool import Pool, pool_of, told_of_pool


def test_a_node_is_in_the_pool_of_its_label() -> None:
    assert pool_of({"pool": "h100"}) == "h100"


def test_a_node_that_says_nothing_is_in_the_default_pool() -> None:
    assert (pool_of({}), pool_of({"pool": ""}), pool_of({"local/pool": "h100"})) == ("default",) * 3


def test_the_first_pool_by_name_whose_selector_matches_has_the_node_whatever_its_label_says() -> None:
    pools = [Pool(name="b", selector={"zone": "1"}), Pool(name="a", selector={"zone": "1", "kind": "x"})]

    assert pool_of({"zone": "1", "pool": "h100"}, pools) == "b"
    assert pool_of({"zone": "1", "kind": "x"}, pools) == "a"
    assert pool_of({"zone": "2", "pool": "h100"}, pools) == "h100"


def test_a_pool_without_a_selector_takes_no_node() -> None:
    assert pool_of({"zone": "1"}, [Pool(name="a", selector={})]) == "default"


def test_what_became_of_a_pool_is_told_on_one_line() -> None:
    plain, limited = Pool(name="a"), Pool(name="a", selector={"b": "2", "a": "1"}, longest_run=timedelta(days=3))

    assert told_of_pool(None, plain) == "not set -> nodes with its name"
    assert told_of_pool(limited, None) == "a=1, b=2, longest run 3d -> not set"


@pytest.mark.parametrize(
    ("pool", "why"),
    [
        (
            Pool(name="default", selector={"a": "1"}),
            "it has the nodes that are in no other, so it takes no labels",
        ),
        (Pool(name="a", selector={f"l{n}": "x" for n in range(17)}), "it has 17 labels, and 16 are the most"),
        (Pool(name="a", longest_run=timedelta(seconds=59)), "the longest run is at least 1m"),
    ],
)
def test_pools_that_cannot_be_meant_say_why(pool: Pool, why: str) -> None:
    assert list(pool.faults()) == [why]
    assert not list(Pool(name="default", longest_run=timedelta(minutes=1)).faults())
