"""The address that a node tells the others."""

import ipaddress

import pytest

from agent.inventory.hardware import Interfaces, NoDataAddressError, choose_address, data_address, interfaces
from muster.domain.errors import UnavailableError

FOUND: Interfaces = {
    name: [ipaddress.ip_address(address) for address in addresses]
    for name, addresses in {
        "docker0": ["172.17.0.1"],
        "eth0": ["10.0.0.5", "fe80::1", "2001:db8::5"],
        "ib0": ["192.168.7.5"],
        "lo": ["127.0.0.1", "::1"],
        "tun0": ["fe80::2"],
    }.items()
}
LISTED = "eth0 10.0.0.5, eth0 2001:db8::5, ib0 192.168.7.5"
ETH0 = ipaddress.ip_address("10.0.0.5")
LOOPBACK = ipaddress.ip_address("127.0.0.1")
DOCKER0 = ipaddress.ip_address("172.17.0.1")


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        (None, "10.0.0.5"),
        ("ib0", "192.168.7.5"),
        ("192.168.0.0/16", "192.168.7.5"),
        ("192.168.7.5/24", "192.168.7.5"),
        ("2001:db8::/32", "2001:db8::5"),
        ("192.168.7.5", "192.168.7.5"),
    ],
)
def test_an_interface_a_cidr_or_an_address_is_chosen(wanted: str | None, chosen: str) -> None:
    assert str(choose_address(FOUND, ETH0, wanted)) == chosen


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("eth9", f"'eth9' is no interface that is up, no CIDR and no address; there is: {LISTED}"),
        ("tun0", f"the interface tun0 has no address; there is: {LISTED}"),
        ("172.30.0.0/16", f"no interface has an address in 172.30.0.0/16; there is: {LISTED}"),
        ("10.0.0.6", f"no interface has an address in 10.0.0.6; there is: {LISTED}"),
    ],
)
def test_what_is_not_there_is_answered_with_what_is(wanted: str, message: str) -> None:
    with pytest.raises(NoDataAddressError) as raised:
        choose_address(FOUND, ETH0, wanted)
    assert str(raised.value) == message


@pytest.mark.parametrize("wanted", ["lo", "127.0.0.2", "docker0", "172.17.0.0/16"])
def test_addresses_that_mean_another_node_elsewhere_are_refused(wanted: str) -> None:
    with pytest.raises(NoDataAddressError, match="other nodes cannot reach this one at") as raised:
        choose_address(FOUND, ETH0, wanted)
    assert LISTED in str(raised.value)


def test_a_coordinator_behind_dockers_bridge_gives_no_address() -> None:
    with pytest.raises(NoDataAddressError, match=r"at 172\.17\.0\.1; name an interface"):
        choose_address(FOUND, DOCKER0, None)


@pytest.mark.parametrize(("wanted", "chosen"), [(None, "127.0.0.1"), ("127.0.0.3", "127.0.0.3"), ("eth0", "10.0.0.5")])
def test_a_fleet_on_one_node_may_use_loopback(wanted: str | None, chosen: str) -> None:
    assert str(choose_address(FOUND, LOOPBACK, wanted)) == chosen


@pytest.mark.parametrize("coordinator", ["127.0.0.1:7000", "127.0.0.1", "dns:///127.0.0.1:7000", "localhost:7000"])
def test_a_coordinator_on_loopback_is_reached_from_loopback(coordinator: str) -> None:
    assert ipaddress.ip_address(data_address(coordinator, None)).is_loopback


def test_every_local_node_may_have_a_loopback_address_of_its_own() -> None:
    assert data_address("127.0.0.1:7000", "127.0.0.3") == "127.0.0.3"


def test_the_name_of_a_coordinator_that_nobody_knows_is_told() -> None:
    with pytest.raises(UnavailableError, match=r"name coordinator\.invalid cannot be looked up"):
        data_address("coordinator.invalid:7000", None)


@pytest.mark.parametrize("coordinator", ["", "a:b", "[::1", "a:1:2"])
def test_a_coordinator_that_is_no_address_is_refused(coordinator: str) -> None:
    with pytest.raises(NoDataAddressError, match="is written like host:port"):
        data_address(coordinator, None)


def test_interfaces_that_are_up_are_found() -> None:
    assert LOOPBACK in interfaces()["lo"]
