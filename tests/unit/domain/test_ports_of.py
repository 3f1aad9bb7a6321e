"""Which ports an execution gets."""

import pytest

from muster.domain.jobs.job import Network, PortRequest
from muster.domain.jobs.ports import node_ports, ports_of
from tests.builders import role, spec

FIXED = PortRequest(name="master", port=29_500)
HTTP = PortRequest(name="http", port=80)


@pytest.mark.parametrize(
    ("declared", "rank", "network", "expected"),
    [
        ({}, 0, Network.HOST, (PortRequest(name="master"),)),
        ({}, 1, Network.HOST, ()),
        ({"http": 80}, 0, Network.HOST, (PortRequest(name="master"), HTTP)),
        ({"master": 29_500, "http": 80}, 0, Network.HOST, (FIXED, HTTP)),
        ({"master": 29_500, "http": 80}, 1, Network.HOST, (PortRequest(name="master"), HTTP)),
        ({"master": 29_500}, 1, Network.BRIDGE, (FIXED,)),
    ],
)
def test_a_fixed_master_is_the_port_of_rank_0(
    declared: dict[str, int | None], rank: int, network: Network, expected: tuple[PortRequest, ...]
) -> None:
    assert ports_of(role(2, ports=declared), rank, network) == expected


@pytest.mark.parametrize(
    ("network", "rank", "expected"), [("host", 0, {29_500, 80}), ("host", 1, {80}), ("bridge", 0, set())]
)
def test_fixed_ports_are_numbers_of_the_node_on_host_networking_alone(
    network: str, rank: int, expected: set[int]
) -> None:
    wanted = role(2, ports={"master": 29_500, "http": 80, "more": None})

    assert node_ports(spec(roles=(wanted,), network=Network(network)), wanted, rank) == expected
