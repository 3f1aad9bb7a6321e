"""Being root where sudo wants a password."""

from pathlib import Path

import pytest

pytest.importorskip("paramiko", reason="paramiko is not installed")

from muster.bootstrap.ssh.connections import SshConnections, SshSettings
from muster.bootstrap.ssh.executor import Shell
from muster.bootstrap.ssh.target import Target
from muster.domain.errors import PermissionDeniedError
from tests.machines.conftest import Machines
from tests.machines.fleet import ADMINISTRATOR, Machine

pytestmark = pytest.mark.machines

PASSWORD = 'it\'s $(a) "password"'


class Asked:
    """Answers with passwords, one after the other."""

    def __init__(self, *passwords: str) -> None:
        self.left = list(passwords)

    async def password(self) -> str:
        return self.left.pop(0)


async def test_sudo_gets_its_password_by_stdin_alone_and_is_asked_for_once(machines: Machines, tmp_path: Path) -> None:
    (machine,) = machines(["asks"], "nopython")
    machine.run("chpasswd", stdin=f"{ADMINISTRATOR}:{PASSWORD}\n")
    machine.run("sh", "-c", f"rm -f /etc/sudoers.d/*; echo '{ADMINISTRATOR} ALL=(ALL:ALL) ALL' >/etc/sudoers.d/ops")
    connections = _connections(machine, tmp_path)
    target = Target(host=machine.address, user=ADMINISTRATOR, key=machine.key)

    wrong = Shell(await connections.connect(target), Asked("nonsense").password)
    with pytest.raises(PermissionDeniedError, match="does not take this password"):
        await wrong.become_root()

    asked = Asked(PASSWORD)
    shell = Shell(await connections.connect(target), asked.password)
    assert (await shell.run("id -u")).out != "0\n"
    assert await shell.must("id -u") == "0\n"
    await shell.put(b"content\n", "/root/file", mode=0o600)
    assert machine.run("cat", "/root/file") == "content\n"
    # The second command finds that sudo remembers the password, and still reads nothing but its own stdin.
    assert await shell.must("cat", stdin=(b"mine",)) == "mine"
    assert PASSWORD not in await shell.must("ps -ef; env; cat /proc/*/cmdline | tr '\\0' ' '")
    assert asked.left == []
    await connections.close()


def _connections(machine: Machine, tmp_path: Path) -> SshConnections:
    async def never(_: object) -> bool:
        return False

    async def nothing(_: object) -> str:
        raise AssertionError("the key has no passphrase")

    directory = tmp_path / "ssh"
    directory.mkdir()
    (directory / "known_hosts").write_text(machine.known_hosts.read_text())
    return SshConnections(SshSettings(directory=directory, agent=False), confirm=never, passphrase=nothing)
