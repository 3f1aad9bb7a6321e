"""The pool of a node."""

from muster.domain.fleet.pool import Pool, pool_of


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
