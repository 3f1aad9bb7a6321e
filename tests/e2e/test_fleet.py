"""The testbed itself: nodes are apart from each other, reach each other, and leave nothing behind."""

import subprocess
from pathlib import Path

import pytest

from tests.e2e.deployment import deployed
from tests.e2e.fleet import Fleet, Node, open_fleet
from tests.e2e.slots import NAMESPACES

pytestmark = pytest.mark.fleet


def reaches(node: Node, other: Node) -> bool:
    # A network that has just come back may lose the first.
    ping = f"busybox ping -q -c 1 -W 1 {other.address} >/dev/null"
    script = f"for each in 1 2 3; do {ping} && echo reached && break; done; true"
    return node.run("sh", "-c", script).strip() == "reached"


def test_each_node_has_its_own_name_address_and_engine(fleet: Fleet) -> None:
    names = [node.run("hostname").strip() for node in fleet.nodes]
    assert names == ["node1", "node2", "node3"]
    assert all(node.address in node.run("ip", "address", "show", "eth0") for node in fleet.nodes)
    assert [node.engine.info()["Name"] for node in fleet.nodes] == names


def test_a_partition_cuts_a_node_off_until_it_is_healed(fleet: Fleet) -> None:
    first, second, third = fleet.nodes
    second.partition()
    assert (reaches(first, second), reaches(first, third)) == (False, True)
    second.heal()
    assert reaches(first, second)


def test_a_half_open_node_hears_nothing_until_it_is_healed(fleet: Fleet) -> None:
    first, second, _ = fleet.nodes
    second.half_open()
    assert not reaches(second, first)
    second.heal()
    assert reaches(second, first)


def test_a_second_fleet_stands_beside_the_first_and_leaves_nothing_behind(fleet: Fleet) -> None:
    with open_fleet(1) as other:
        (node,) = other.nodes
        assert node.address not in {mine.address for mine in fleet.nodes}
        directory = other.directory
    assert not directory.exists()
    assert not [path for path in NAMESPACES.iterdir() if path.name.startswith(f"mfleet{directory.name}-")]


def test_a_deployment_that_does_not_get_ready_leaves_no_program_behind(fleet: Fleet, tmp_path: Path) -> None:
    (tmp_path / "home").touch()  # nobody can log in whose directory is a file
    with pytest.raises(AssertionError, match="home"), deployed(fleet, tmp_path):
        pass
    assert (tmp_path / "coordinator.log").read_text().count("sha256:"), "the coordinator had started"
    assert subprocess.run(("pgrep", "-f", str(tmp_path)), check=False, capture_output=True, text=True).stdout == ""
