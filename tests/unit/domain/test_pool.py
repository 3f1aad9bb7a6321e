"""The pool of a node."""

from datetime import timedelta

import pytest

from muster.domain.fleet.pool import Pool, PortionRule, levels_of, pool_of, told_of_pool


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
    assert told_of_pool(plain, Pool(name="a", levels=("row", "switch"))) == (
        "nodes with its name -> nodes with its name, levels row switch"
    )


def test_a_line_about_a_pool_says_what_it_enforces() -> None:
    assert (
        told_of_pool(None, Pool(name="a", enforce=PortionRule.STOP)) == "not set -> nodes with its name, enforce stop"
    )


def test_levels_of_a_pool_stand_in_place_of_the_usual_ones_there_alone() -> None:
    pools = [Pool(name="a", levels=("row", "switch")), Pool(name="b")]

    assert levels_of("a", pools) == ("row", "switch")
    assert levels_of("b", pools) == levels_of("c", pools) == ("zone", "block", "rack", "nvlink")


@pytest.mark.parametrize(
    ("pool", "why"),
    [
        (
            Pool(name="default", selector={"a": "1"}),
            "it has the nodes that are in no other, so it takes no labels",
        ),
        (Pool(name="a", selector={f"l{n}": "x" for n in range(17)}), "it has 17 labels, and 16 are the most"),
        (Pool(name="a", longest_run=timedelta(seconds=59)), "the longest run is at least 1m"),
        (Pool(name="a", levels=("a", "b", "c", "d", "e", "f")), "it has 6 levels, and 5 are the most"),
        (Pool(name="a", levels=("rack", "rack")), "a level is named twice"),
        (
            Pool(name="a", levels=("a rack",)),
            'the level "a rack" is no name of a label: at most 128 letters, digits and ._/- in between',
        ),
        (Pool(name="a", levels=("none",)), "no level is called none, as jobs write that where they want none"),
        (
            Pool(name="a", levels=("local/rack",)),
            "nodes give the label local/rack to themselves, so it does not say where they are",
        ),
    ],
)
def test_pools_that_cannot_be_meant_say_why(pool: Pool, why: str) -> None:
    assert list(pool.faults()) == [why]
    assert not list(Pool(name="default", longest_run=timedelta(minutes=1)).faults())
