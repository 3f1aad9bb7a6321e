"""The machines of this tier are what tests take them for."""

import pytest

from tests.e2e import images
from tests.machines.conftest import Machines
from tests.machines.fleet import ADMINISTRATOR, CommandError

pytestmark = pytest.mark.machines

OUTSIDE = "192.0.2.1"
"""An address of TEST-NET-1, which nobody has."""


def test_a_machine_boots_with_every_unit_running_and_takes_its_disk_through_a_reboot(machines: Machines) -> None:
    (machine,) = machines(["first"])
    assert machine.run("systemctl", "is-system-running") == "running\n"
    assert machine.run("hostname") == "first\n"
    machine.run("touch", "/var/lib/kept")
    machine.reboot()
    assert machine.file("/var/lib/kept").exists()
    assert machine.run("ps", "-o", "comm=", "-p", "1") == "systemd\n"


def test_machines_are_reached_by_ssh_and_reach_each_other_and_nobody_else(machines: Machines) -> None:
    first, second = machines(["first", "second"])
    assert second.ssh("hostname") == "second\n"
    assert second.ssh("sudo", "id", "-un", user=ADMINISTRATOR) == "root\n"
    assert first.run("bash", "-c", f"exec 3<>/dev/tcp/{second.address}/22 && head -c 4 <&3") == "SSH-"
    with pytest.raises(CommandError, match="Network is unreachable"):
        first.run("bash", "-c", f"exec 3<>/dev/tcp/{OUTSIDE}/80")
    assert first.file("/etc/machine-id").read_text() != second.file("/etc/machine-id").read_text()


@pytest.mark.parametrize(("flavour", "has_python"), [("nopython", False), ("bare", True)])
def test_only_a_flavour_with_python_has_it(machines: Machines, flavour: str, has_python: bool) -> None:
    (machine,) = machines(["node"], flavour)
    found = machine.run("sh", "-c", "ls /usr/bin | grep -c '^python3' || true")
    assert (int(found) > 0) == has_python


def test_a_machine_with_docker_runs_containers(machines: Machines) -> None:
    (machine,) = machines(["node"], "docker")
    image = images.busybox()
    machine.load(image)
    assert machine.run("docker", "run", "--rm", image.reference, "/bin/echo", "hello") == "hello\n"


def test_a_machine_that_is_online_reaches_the_packages_of_its_release(machines: Machines) -> None:
    (machine,) = machines(["node"], "nopython", online=True)
    machine.run("apt-get", "update", "--quiet")
    assert "docker.io" in machine.run("apt-cache", "search", "--names-only", "^docker.io$")
