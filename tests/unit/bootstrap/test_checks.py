"""What is right and wrong with a computer, by its facts."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from muster.bootstrap.inspect.checks import BundleOffer, Severity, Situation, check, compare, worst
from muster.bootstrap.inspect.facts import Docker, Installed, MachineFacts, Python
from muster.bootstrap.request import MachineRequest
from muster.bootstrap.ssh.target import Target

GIB = 1 << 30
OK, WARNING, ERROR = Severity

DOCKER = Docker(
    version="27.1.0", live_restore=True, cgroup_driver="systemd", cgroup_version="2", runtimes=("nvidia", "runc")
)
GOOD = MachineFacts(
    hostname="gpu7",
    architecture="x86_64",
    os_name="Debian 12",
    kernel="6.1",
    glibc=(2, 36),
    init="systemd",
    systemd=252,
    pythons=(Python(path="/usr/bin/python3", version=(3, 11, 2), venv=True),),
    docker=DOCKER,
    pci_gpus=1,
    gpus=("NVIDIA H100",),
    gpu_driver="570.86",
    toolkit="1.17",
    memory=64 * GIB,
    opt_free=50 * GIB,
    state_free=50 * GIB,
    shm=32 * GIB,
    clock=0.0,
    clock_synchronised=True,
    interface="eth0",
    address="10.0.0.7",
    mtu=9000,
    ephemeral=(32768, 60999),
    reachable={7460: True, 7461: True},
)
WISH = MachineRequest(target=Target(host="10.0.0.7"))
OFFER = BundleOffer(version="0.4.0", platforms=frozenset({"cp311-x86_64"}), wheels_glibc=(2, 28))
SITUATION = Situation(wish=WISH, coordinator="10.0.0.1:7460", offer=OFFER)


def _bad(facts: MachineFacts, situation: Situation = SITUATION) -> Mapping[str, Severity]:
    return {each.id: each.severity for each in check(facts, situation) if each.severity is not OK}


def test_nothing_is_wrong_with_a_good_computer() -> None:
    assert _bad(GOOD) == {}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"architecture": "riscv64", "pythons": GOOD.pythons}, {"system.architecture": ERROR, "python": ERROR}),
        ({"systemd": None, "init": "runit"}, {"system.systemd": ERROR}),
        ({"systemd": 219}, {"system.systemd": ERROR}),
        ({"missing": ("tar",)}, {"system.tools": ERROR}),
        ({"root": False}, {"system.root": WARNING}),
        ({"pythons": ()}, {"python": ERROR}),
        ({"pythons": (replace(GOOD.pythons[0], version=(3, 10, 12)),)}, {"python": ERROR}),
        ({"pythons": (replace(GOOD.pythons[0], venv=False),)}, {"python": ERROR}),
        ({"glibc": (2, 17)}, {"python": ERROR}),
        ({"glibc": None}, {"python": ERROR}),
        ({"docker": None}, {"docker": WARNING}),
        ({"docker": None, "docker_problem": "permission denied"}, {"docker": WARNING}),
        ({"docker": replace(DOCKER, version="19.03.5")}, {"docker": WARNING}),
        ({"docker": replace(DOCKER, live_restore=False)}, {"docker.live-restore": WARNING}),
        ({"docker": replace(DOCKER, cgroup_driver="cgroupfs")}, {"docker.cgroup": WARNING}),
        ({"docker": replace(DOCKER, cgroup_driver="cgroupfs", cgroup_version="1")}, {}),
        ({"gpus": (), "gpu_driver": None}, {"gpu": ERROR}),
        ({"gpu_problem": "couldn't communicate"}, {"gpu": ERROR}),
        ({"pci_gpus": 8}, {"gpu": WARNING}),
        ({"toolkit": None}, {"gpu.toolkit": ERROR}),
        ({"docker": replace(DOCKER, runtimes=("runc",))}, {"gpu.toolkit": ERROR}),
        ({"docker": replace(DOCKER, runtimes=("runc",)), "cdi": True}, {}),
        ({"pci_gpus": 0, "gpus": (), "toolkit": None}, {}),
        ({"opt_free": GIB // 2}, {"disk.opt": ERROR}),
        ({"state_free": 2 * GIB}, {"disk.state": WARNING}),
        ({"state_free": GIB // 2}, {"disk.state": ERROR}),
        ({"memory": GIB // 2}, {"memory": WARNING}),
        ({"shm": 64 << 20}, {"shm": WARNING}),
        ({"infiniband": ("mlx5_0",), "docker_memlock": "8388608"}, {"memlock": WARNING}),
        ({"infiniband": ("mlx5_0",), "docker_memlock": "infinity", "memlock": "8192"}, {}),
        ({"clock": 3.0}, {"clock": WARNING}),
        ({"clock": -500.0}, {"clock": ERROR}),
        ({"clock_synchronised": False}, {"clock.synchronised": WARNING}),
        ({"wanted_missing": "ib0"}, {"address": ERROR}),
        ({"reachable": {7460: True, 7461: False}}, {"coordinator": ERROR}),
        ({"ephemeral": (1024, 65535)}, {"ports": WARNING}),
        ({"ephemeral": (1024, 65535), "reserved": "5000,20000-29999"}, {}),
        ({"firewalls": ("ufw",)}, {"firewall": WARNING}),
        ({"muster": Installed(version="0.3.0", unit="failed")}, {"muster": WARNING}),
        ({"hostname": "a b"}, {"name": ERROR}),
    ],
)
def test_what_is_wrong_is_found_and_nothing_else(change: Mapping[str, Any], found: Mapping[str, Severity]) -> None:
    assert _bad(replace(GOOD, **change)) == found


def test_whatever_is_not_right_has_a_remedy() -> None:
    worse = MachineFacts(
        hostname="a b", clock=900.0, mtu=1400, infiniband=("x",), memlock="64", firewalls=("ufw",), pci_gpus=2
    )
    findings = (*check(worse, SITUATION), *compare([worse, worse, GOOD])[0])
    assert [each.id for each in findings if (each.severity is OK) != (each.remedy == "")] == []


def test_a_frozen_build_needs_no_python_but_a_c_library() -> None:
    situation = replace(SITUATION, offer=replace(OFFER, frozen={"x86_64": (2, 31)}))
    without = replace(GOOD, pythons=())
    assert _bad(without, situation) == {}
    assert _bad(replace(without, glibc=(2, 28)), situation) == {"python": ERROR}
    assert _bad(replace(without, glibc=None), situation) == {"python": ERROR}


def test_the_name_of_another_node_is_not_given_again() -> None:
    situation = replace(SITUATION, present=frozenset({"gpu7"}), enrolled=frozenset({"gpu7"}))
    assert _bad(GOOD, situation) == {"name": ERROR}
    assert _bad(GOOD, replace(situation, wish=replace(WISH, name="other"))) == {}
    assert _bad(replace(GOOD, muster=Installed(version="1", joined=True, name="gpu7")), situation) == {}


def test_a_name_that_belongs_to_a_lost_key_has_to_be_given_back_first() -> None:
    findings = check(GOOD, replace(SITUATION, enrolled=frozenset({"gpu7"})))
    assert [each.remedy for each in findings if each.id == "name"] == ["`muster nodes revoke gpu7`, then try again"]


def test_clocks_are_compared_with_the_coordinators_too() -> None:
    assert _bad(GOOD, replace(SITUATION, coordinator_clock=-1000.0)) == {"clock": ERROR}
    assert _bad(GOOD, replace(SITUATION, coordinator_clock=20.0)) == {}


def test_computers_are_compared_with_each_other() -> None:
    odd = replace(GOOD, hostname="odd", mtu=1500)
    third = replace(GOOD, mtu=None)
    found = compare([GOOD, odd, third])
    assert [[each.id for each in one] for one in found] == [["hostname"], ["mtu"], ["hostname"]]


def test_the_worst_finding_counts() -> None:
    assert worst(check(GOOD, SITUATION)) is OK
    assert worst(check(replace(GOOD, systemd=None, docker=None), SITUATION)) is ERROR
    assert worst(()) is OK
