"""Commands over SSH, to real servers on loopback."""

import asyncio
import hashlib
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("paramiko", reason="paramiko is not installed")

from muster.bootstrap.ssh.attempt import HostKeyRefusedError
from muster.bootstrap.ssh.connections import SshConnections, SshSettings
from muster.bootstrap.ssh.executor import LocalExecutor, Shell
from muster.bootstrap.ssh.known_hosts import HostKey
from muster.bootstrap.ssh.ssh_config import SshConfig
from muster.bootstrap.ssh.target import Target, parse_target
from muster.domain.errors import MusterError, PermissionDeniedError, UnavailableError
from tests.integration.sshd import PROGRAM, Sshd, make_key, sshd

RELAY = """
import os, socket, sys, threading
open(__file__ + ".used", "w").close()
end = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def back():
    while data := end.recv(65536):
        os.write(1, data)
    os._exit(0)
threading.Thread(target=back).start()
while data := os.read(0, 65536):
    end.sendall(data)
end.shutdown(socket.SHUT_WR)
"""
"""What a ProxyCommand does."""
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no sshd")


class User:
    """Somebody with a directory for SSH, who answers the same each time and is remembered to have been asked."""

    def __init__(self, directory: Path, *, trusts: bool = False, passphrases: Sequence[str] = ()) -> None:
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.settings = SshSettings(
            directory=directory, system_known_hosts=directory / "none", agent=False, connect_within=5
        )
        self.trusts = trusts
        self.asked: list[str] = []
        self._passphrases = list(passphrases)

    def knows(self, *keys: HostKey) -> None:
        (self.directory / "known_hosts").write_text("".join(f"{key.line}\n" for key in keys))

    @asynccontextmanager
    async def shell(self, target: Target) -> AsyncIterator[Shell]:
        connections = SshConnections(self.settings, confirm=self._confirm, passphrase=self._passphrase)
        try:
            shell = Shell(await connections.connect(target), self._password)
            try:
                yield shell
            finally:
                await shell.close()
        finally:
            await connections.close()

    async def _confirm(self, key: HostKey) -> bool:
        self.asked.append(key.fingerprint)
        return self.trusts

    async def _passphrase(self, file: Path) -> str:
        self.asked.append(file.name)
        return self._passphrases.pop(0)

    async def _password(self) -> str:
        raise AssertionError("nobody needs sudo here")


def _at(server: Sshd, **more: Any) -> Target:
    return replace(parse_target(f"127.0.0.1:{server.port}"), key=server.key, **more)


async def test_a_server_of_which_nothing_is_known_is_shown_and_refused_and_nothing_is_noted(tmp_path: Path) -> None:
    user = User(tmp_path / "ssh")
    with sshd(tmp_path / "server") as server:
        with pytest.raises(HostKeyRefusedError, match=server.host_key.fingerprint.replace("+", r"\+")):
            async with user.shell(_at(server)):
                pass
        assert user.asked == [server.host_key.fingerprint]
    assert not (tmp_path / "ssh" / "known_hosts").exists()


async def test_a_key_that_was_confirmed_is_known_from_then_on(tmp_path: Path) -> None:
    user = User(tmp_path / "ssh", trusts=True)
    with sshd(tmp_path / "server") as server:
        for _ in range(2):
            async with user.shell(_at(server)) as shell:
                assert (await shell.run("echo $((6 * 7))")).out == "42\n"
        assert user.asked == [server.host_key.fingerprint]
        assert (tmp_path / "ssh" / "known_hosts").read_text() == f"{server.host_key.line}\n"


async def test_a_key_that_has_changed_is_refused_without_a_question(tmp_path: Path) -> None:
    user = User(tmp_path / "ssh", trusts=True)
    kind, key = make_key(tmp_path / "before").with_suffix(".pub").read_text().split()[:2]
    with sshd(tmp_path / "server") as server:
        user.knows(replace(server.host_key, kind=kind, key=key))
        with pytest.raises(HostKeyRefusedError, match=r"has changed .*ssh-keygen -R"):
            async with user.shell(_at(server)):
                pass
    assert user.asked == []


async def test_a_key_that_was_revoked_is_refused(tmp_path: Path) -> None:
    user = User(tmp_path / "ssh", trusts=True)
    with sshd(tmp_path / "server") as server:
        known = tmp_path / "ssh" / "known_hosts"
        known.write_text(f"{server.host_key.line}\n@revoked * {server.host_key.kind} {server.host_key.key}\n")
        with pytest.raises(HostKeyRefusedError, match="revoked"):
            async with user.shell(_at(server)):
                pass
    assert user.asked == []


async def test_a_server_is_reached_over_two_others_whose_keys_count_as_much(tmp_path: Path) -> None:
    user = User(tmp_path / "ssh")
    with (
        sshd(tmp_path / "first") as first,
        sshd(tmp_path / "second") as second,
        sshd(tmp_path / "last") as last,
    ):
        user.knows(first.host_key, second.host_key, last.host_key)
        way = (_at(first), _at(second))
        async with user.shell(_at(last, jumps=way)) as shell:
            said = (await shell.run('echo "$SSH_CONNECTION"')).out
            assert said.split()[-1] == str(last.port)
        user.knows(first.host_key, last.host_key)
        with pytest.raises(HostKeyRefusedError):
            async with user.shell(_at(last, jumps=way)):
                pass
    assert user.asked == [second.host_key.fingerprint]


async def test_the_configuration_of_ssh_says_where_a_name_leads(tmp_path: Path) -> None:
    user = User(tmp_path / "ssh")
    with sshd(tmp_path / "bastion") as bastion, sshd(tmp_path / "server") as server:
        user.knows(bastion.host_key, server.host_key)
        (tmp_path / "ssh" / "config").write_text(
            f"Host node\n  HostName 127.0.0.1\n  Port {server.port}\n  IdentityFile {server.key}\n  ProxyJump door\n"
            f"Host door\n  HostName 127.0.0.1\n  Port {bastion.port}\n  IdentityFile {bastion.key}\n"
        )
        fresh = User(tmp_path / "ssh")
        async with fresh.shell(parse_target("node")) as shell:
            assert (await shell.run("echo here")).out == "here\n"


@pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no ssh")
async def test_every_word_of_the_configuration_counts_that_ssh_knows(tmp_path: Path) -> None:
    with sshd(tmp_path / "server") as server:
        user = User(tmp_path / "ssh")
        user.knows(replace(server.host_key, name="the-one"))
        relay = tmp_path / "relay.py"
        relay.write_text(RELAY)
        (tmp_path / "more").write_text(f"Host node\n  IdentityFile {server.key}\n")
        (tmp_path / "ssh" / "config").write_text(
            f"Include {tmp_path / 'more'}\n"
            "Match host node\n  HostKeyAlias the-one\n  HostName 127.0.0.1\n"
            f"  Port {server.port}\n  ProxyCommand {sys.executable} {relay} %h %p\n"
        )
        async with user.shell(parse_target("node")) as shell:
            assert (await shell.run("echo here")).out == "here\n"
    assert (tmp_path / "relay.py.used").exists()


@pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no ssh")
async def test_a_configuration_that_ssh_cannot_read_is_told_in_its_words(tmp_path: Path) -> None:
    user = User(tmp_path / "ssh")
    (tmp_path / "ssh" / "config").write_text("Hots node\n")

    with pytest.raises(MusterError, match=r"the configuration of SSH cannot be read: .*Bad configuration option: hots"):
        async with user.shell(parse_target("node")):
            pass


async def test_a_bastion_for_all_is_not_reached_over_itself_and_circles_end(tmp_path: Path) -> None:
    user = User(tmp_path / "ssh")
    with sshd(tmp_path / "bastion") as bastion, sshd(tmp_path / "server") as server:
        user.knows(bastion.host_key, server.host_key)
        (tmp_path / "ssh" / "config").write_text(
            f"Host node\n  HostName 127.0.0.1\n  Port {server.port}\n  IdentityFile {server.key}\n"
            f"Host door\n  HostName 127.0.0.1\n  Port {bastion.port}\n  IdentityFile {bastion.key}\n"
            "Host one\n  ProxyJump two\nHost two\n  ProxyJump one\nHost *\n  ProxyJump door\n"
        )
        fresh = User(tmp_path / "ssh")
        async with asyncio.timeout(30), fresh.shell(parse_target("node")) as shell:
            assert (await shell.run("echo here")).out == "here\n"
        with pytest.raises(MusterError, match=r"in a circle: .*one.* -> .*two.* -> .*one"):
            async with asyncio.timeout(30), fresh.shell(parse_target("one")):
                pass


async def test_a_connection_that_breaks_is_no_exit_code(tmp_path: Path) -> None:
    user = User(tmp_path / "ssh")
    with sshd(tmp_path / "server") as server:
        user.knows(server.host_key)
        async with user.shell(_at(server)) as shell:
            with pytest.raises(UnavailableError, match="the connection broke"):
                await shell.run("kill $(ps -o ppid= -p $PPID) $PPID; sleep 20", limit=10)


async def test_a_key_with_a_passphrase_is_asked_for_until_it_is_right(tmp_path: Path) -> None:
    user = User(tmp_path / "ssh", passphrases=["wrong", "open sesame"])
    with sshd(tmp_path / "server", passphrase="open sesame") as server:
        user.knows(server.host_key)
        async with user.shell(_at(server)) as shell:
            assert (await shell.run("echo in")).out == "in\n"
    assert user.asked == ["user", "user"]


async def test_a_key_that_the_server_does_not_know_is_refused_with_what_to_do(tmp_path: Path) -> None:
    user = User(tmp_path / "ssh")
    with sshd(tmp_path / "server") as server:
        user.knows(server.host_key)
        with pytest.raises(PermissionDeniedError, match="--key"):
            async with user.shell(replace(_at(server), key=make_key(tmp_path / "other"))):
                pass


async def test_a_file_arrives_whole_with_its_mode(tmp_path: Path) -> None:
    user = User(tmp_path / "ssh")
    content = bytes(range(256)) * 40_000
    (tmp_path / "source").write_bytes(content)
    with sshd(tmp_path / "server") as server:
        user.knows(server.host_key)
        async with user.shell(_at(server)) as shell:
            target = tmp_path / "it's there"
            await shell.put(tmp_path / "source", str(target), mode=0o640)
            assert (await shell.must("head -c 300000 /dev/zero | tr '\\0' x")) == "x" * 300_000
    assert hashlib.sha256(target.read_bytes()).digest() == hashlib.sha256(content).digest()
    assert target.stat().st_mode & 0o777 == 0o640


async def test_a_command_that_hangs_is_given_up_and_the_connection_goes_on(tmp_path: Path) -> None:
    user = User(tmp_path / "ssh")
    with sshd(tmp_path / "server") as server:
        user.knows(server.host_key)
        async with user.shell(_at(server)) as shell:
            with pytest.raises(UnavailableError, match=r"within 0\.5 s"):
                await shell.run("sleep 30", limit=0.5)
            assert (await shell.run("echo >&2 words; exit 3")).last_words == "words"


async def test_a_cancelled_command_holds_nothing_up(tmp_path: Path) -> None:
    user = User(tmp_path / "ssh")
    with sshd(tmp_path / "server") as server:
        user.knows(server.host_key)
        async with user.shell(_at(server)) as shell, asyncio.timeout(10):
            async with asyncio.TaskGroup() as tasks:
                waiting = tasks.create_task(shell.run(f"touch {tmp_path}/begun; sleep 60"), name="hangs")
                while not (tmp_path / "begun").exists():  # noqa: ASYNC110 - nobody tells when
                    await asyncio.sleep(0.02)
                waiting.cancel()
            assert waiting.cancelled()
            assert (await shell.run("echo on")).out == "on\n"


async def test_who_answers_without_a_word_of_ssh_is_given_up(tmp_path: Path) -> None:
    user = User(tmp_path / "ssh")
    user.settings = replace(user.settings, connect_within=0.5)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        target = parse_target(f"127.0.0.1:{mute.getsockname()[1]}")
        with pytest.raises(UnavailableError, match="cannot be reached by SSH"):
            async with user.shell(target):
                pass


async def test_this_computer_runs_commands_like_another(tmp_path: Path) -> None:
    shell = LocalExecutor()
    (tmp_path / "a").write_bytes(b"two")
    output = await shell.run("cat; exit 4", stdin=(b"one ", tmp_path / "a"))
    assert (output.out, output.code) == ("one two", 4)
    with pytest.raises(UnavailableError):
        await shell.run("sleep 600; true", limit=0.2)  # ends with what the shell has started


@pytest.mark.skipif(shutil.which("ssh") is None, reason="there is no ssh that could be asked")
async def test_known_servers_are_looked_up_in_the_users_directory_wherever_home_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ssh itself knows the home directory of the user table, and does not look at HOME."""
    monkeypatch.setenv("HOME", str(tmp_path))
    words = await asyncio.to_thread(SshConfig(directory=tmp_path / ".ssh").of, Target(host="gpu-1"))
    assert words.files("userknownhostsfile")[0] == tmp_path / ".ssh" / "known_hosts"
