"""All SSH connections of one run, and what they share."""

import asyncio
import getpass
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import paramiko

from muster.bootstrap.ssh.attempt import (
    ConnectionAttempt,
    Hop,
    HostKeyRefusedError,
    LockedKeysError,
    UnknownKeyError,
    load_key,
)
from muster.bootstrap.ssh.exchange import CONNECT, SshExecutor
from muster.bootstrap.ssh.known_hosts import SSH_PORT, HostKey, Verdict, add, judge, read_lines
from muster.bootstrap.ssh.ssh_config import SshConfig
from muster.bootstrap.ssh.target import Target, parse_jumps
from muster.domain.errors import MusterError, PermissionDeniedError

_TRIES = 3
"""How often a passphrase is asked for."""
_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSettings:
    """What of this user's SSH is used."""

    directory: Path = field(default_factory=lambda: Path("~/.ssh").expanduser())
    """The directory with `config`, `known_hosts` and keys."""
    system_known_hosts: Path = Path("/etc/ssh/ssh_known_hosts")
    agent: bool = True
    """Whether keys of the SSH agent are offered."""
    connect_within: float = CONNECT
    """Seconds for a connection, and again for each step until one is let in."""


class SshConnections:
    """All SSH connections of one run; bastions, answers about host keys, and passphrases are shared among them.

    `confirm` says whether a key is believed of whose server nothing is known; `passphrase` asks for that of a key file.
    """

    def __init__(
        self,
        settings: SshSettings,
        *,
        confirm: Callable[[HostKey], Awaitable[bool]],
        passphrase: Callable[[Path], Awaitable[str]],
    ) -> None:
        self._settings = settings
        self._confirm = confirm
        self._passphrase = passphrase
        self._asking = asyncio.Lock()
        self._unlocked: dict[Path, paramiko.PKey] = {}
        self._bastions: dict[Target, asyncio.Lock] = {}
        self._open: dict[Target, paramiko.Transport] = {}
        self._config = SshConfig(settings.directory)

    async def connect(self, target: Target) -> "SshExecutor":
        """A connection to a target; raises MusterError that says what is in the way."""
        return SshExecutor(str(target), await self._reach(target, ()))

    async def close(self) -> None:
        """Close the bastions; what goes over them ends."""
        for transport in self._open.values():
            await asyncio.to_thread(transport.close)

    async def _reach(self, target: Target, passed: tuple[str, ...]) -> paramiko.Transport:
        hop = self._hop(target)
        if hop.name in passed:
            raise MusterError(f"the jumps lead in a circle: {' -> '.join((*passed, hop.name))}")
        over: paramiko.Transport | None = None
        way: tuple[Target, ...] = ()
        for jump in hop.jumps:
            # What `Host *` says of all holds for a bastion, too, but it is not reached over itself.
            if self._hop(jump).name != hop.name:
                over = await self._bastion(_with_jumps(jump, way or None), (*passed, hop.name))
                way = (*way, jump)
        return await self._enter(hop, over)

    async def _bastion(self, target: Target, passed: tuple[str, ...]) -> paramiko.Transport:
        """The one connection to a bastion."""
        if self._hop(target).name in passed:
            return await self._reach(target, passed)  # which says so; nobody must wait for himself
        async with self._bastions.setdefault(target, asyncio.Lock()):
            known = self._open.get(target)
            if known is None or not known.is_active():
                self._open[target] = await self._reach(target, passed)
            return self._open[target]

    async def _enter(self, hop: Hop, over: paramiko.Transport | None) -> paramiko.Transport:
        for _ in range(_TRIES + 2):
            attempt = ConnectionAttempt(
                hop, over, self._unlocked, agent=self._settings.agent, within=self._settings.connect_within
            )
            try:
                return await attempt.run()
            except UnknownKeyError as unknown:
                await self._learn(hop, unknown.key)
            except LockedKeysError as locked:
                await self._unlock(locked.files)
        raise PermissionDeniedError(f"{hop.name} lets nobody in with the keys that are there")

    async def _learn(self, hop: Hop, key: HostKey) -> None:
        async with self._asking:
            lines = await asyncio.to_thread(read_lines, hop.known_hosts)
            if judge(lines, key) is not Verdict.UNKNOWN:
                return  # another connection has asked meanwhile; the next attempt finds the answer
            if not await self._confirm(key):
                raise HostKeyRefusedError(
                    f"the host key of {key.name} is not known: {key.kind} {key.fingerprint}; compare it with that of "
                    f"`ssh-keygen -lf` there, then say yes or give it with --accept-host-key"
                )
            await asyncio.to_thread(add, hop.known_hosts[0], key)

    async def _unlock(self, files: Sequence[Path]) -> None:
        async with self._asking:
            for file in files:
                if file not in self._unlocked:
                    await self._unlock_one(file)

    async def _unlock_one(self, file: Path) -> None:
        for _ in range(_TRIES):
            word = await self._passphrase(file)
            try:
                self._unlocked[file] = await asyncio.to_thread(load_key, file, word)
            except (paramiko.SSHException, ValueError):
                continue
            return
        raise PermissionDeniedError(f"this is not the passphrase of {file}")

    def _hop(self, target: Target) -> Hop:
        said, directory = self._config.of(target), self._settings.directory
        keys = (target.key.expanduser(),) if target.key is not None else said.files("identityfile")
        jump = said.one("proxyjump")
        jumps = target.jumps if target.jumps is not None else () if jump is None else parse_jumps(jump)
        known_hosts = said.files("userknownhostsfile") or (directory / "known_hosts",)
        host = said.one("hostname") or target.host
        port = target.port or int(said.one("port") or SSH_PORT)
        user = target.user or said.one("user") or getpass.getuser()
        command = said.one("proxycommand") if not jumps else None
        return Hop(
            target=target,
            host=host,
            port=port,
            user=user,
            keys=keys or tuple(directory / name for name in _DEFAULT_KEYS),
            known_hosts=(*known_hosts, self._settings.system_known_hosts),
            jumps=jumps,
            alias=said.one("hostkeyalias"),
            proxy_command=None if command is None else _filled_in(command, target.host, host, port, user),
        )


def _with_jumps(jump: Target, jumps: tuple[Target, ...] | None) -> Target:
    return Target(host=jump.host, user=jump.user, port=jump.port, key=jump.key, jumps=jumps)


def _filled_in(command: str, name: str, host: str, port: int, user: str) -> str:
    """A ProxyCommand with its tokens replaced."""
    values = {"%h": host, "%p": str(port), "%r": user, "%n": name, "%%": "%"}
    return re.sub(r"%[hprn%]", lambda found: values[found[0]], command)
