"""How local nodes divide one machine."""

import pytest

from agent.local_nodes import share_of


@pytest.mark.parametrize(("total", "count"), [(2, 2), (7, 3), (16, 3), (1 << 34, 7)])
def test_the_shares_add_up_to_the_machine(total: int, count: int) -> None:
    shares = [share_of(total, number, count) for number in range(count)]

    assert sum(shares) == total
    assert max(shares) - min(shares) <= 1


def test_a_machine_of_few_cpus_still_gives_each_node_one() -> None:
    assert [share_of(2, number, 3) for number in range(3)] == [1, 1, 1]
