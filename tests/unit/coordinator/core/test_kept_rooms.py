"""What is kept of rooms in domains from one look to the next gives the same seats as counting them anew."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.candidates import Available
from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.classes.leaf_rooms import MOST_KINDS
from coordinator.core.placement.placement import place
from muster.domain.natural_order import natural
from tests.builders import capacity, spec

RACKS = ("r1", "r2", "r10", "r11")


NODES = 16


def node(chance: Random, number: int) -> Capacity:
    labels = {"zone": "a", "rack": chance.choice(RACKS)} if chance.random() < 0.9 else {"zone": "a"}
    cpus = chance.choice([4, 64, 64, 64])
    return capacity(f"n{number}", chance.randint(3, 8), cpus=cpus, labels=labels, levels=("zone", "rack"))


def fleet(chance: Random) -> Capacities:
    return Capacities(node(chance, number) for number in range(NODES))


def offered(capacities: Capacities) -> Available:
    return Available(capacities=capacities)


@pytest.mark.parametrize("seed", range(20))
def test_seats_are_those_of_a_fleet_at_which_nobody_has_looked_before(seed: int) -> None:
    chance = Random(seed)
    capacities = fleet(chance)

    for _ in range(30):
        if chance.random() < 0.1:
            capacities.drop(chance.choice([each.node for each in capacities]))
        else:
            capacities.put(node(chance, chance.randrange(NODES)))
        wanted = spec(chance.randint(3, 6), gpus=chance.choice([2, 4, 8]))

        assert place(wanted, offered(capacities)) == place(wanted, offered(Capacities(list(capacities))))

    assert len(capacities.rooms) > 0


def test_rooms_of_kinds_that_were_asked_for_longest_ago_are_forgotten() -> None:
    capacities = Capacities(capacity(f"n{number}", 8, labels={"rack": f"r{number % 4}"}) for number in range(40))

    for count in range(2, MOST_KINDS + 5):
        place(spec(count, gpus=8), offered(capacities))

    assert len(capacities.rooms) == MOST_KINDS


@given(st.lists(st.integers(0, 10**70)))
def test_names_are_in_the_order_of_their_numbers(numbers: list[int]) -> None:
    assert sorted((f"n-{each}" for each in numbers), key=natural) == [f"n-{each}" for each in sorted(numbers)]


def test_what_comes_before_a_number_comes_before_it() -> None:
    assert natural("n-") < natural("n-2") < natural("n-10") < natural("n-a")
    assert natural("n-007") == natural("n-7")
