"""Commands over SSH; the only module that knows paramiko.

paramiko blocks, so each connection attempt and each command is one call in a thread, with a limit in time of its own.
Nobody is believed because nothing is known of him: a key that is not in known_hosts is shown and asked about, one that
differs from what is known there is refused.
"""

import asyncio
import getpass
import logging
import select
import socket
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import paramiko
from paramiko.ssh_exception import PasswordRequiredException

from muster.bootstrap.executor import QUICK, Output, Stdin
from muster.bootstrap.known_hosts import SSH_PORT, HostKey, Verdict, add, judge, kinds_known, name_of, read_lines
from muster.bootstrap.target import Target, parse_jumps
from muster.domain.errors import MusterError, PermissionDeniedError, UnavailableError

CONNECT = 15.0
"""Seconds for a connection, and again for each step until one is let in."""
_ALIVE = 15
"""Seconds between signs of life, so that firewalls keep the connection while somebody reads the plan."""
_PIECE = 1 << 15
_TRIES = 3
"""How often a passphrase is asked for."""
_DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")
_MOST_OUTPUT = 1 << 24
"""Bytes that are kept of what a command prints; nothing here prints as much."""

logging.getLogger("paramiko").addHandler(logging.NullHandler())


class HostKeyRefusedError(PermissionDeniedError):
    """A server shows a key that is not believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSettings:
    """What of this user's SSH is used."""

    directory: Path = field(default_factory=lambda: Path("~/.ssh").expanduser())
    """With `config`, `known_hosts` and keys."""
    system_known_hosts: Path = Path("/etc/ssh/ssh_known_hosts")
    agent: bool = True
    """Whether keys of the SSH agent are offered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hop:
    """A target with all that was left open filled in."""

    target: Target
    host: str
    port: int
    user: str
    keys: tuple[Path, ...]
    known_hosts: tuple[Path, ...]
    jumps: tuple[Target, ...]

    @property
    def name(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"


class _UnknownKeyError(Exception):
    def __init__(self, key: HostKey) -> None:
        super().__init__(key)
        self.key = key


class _LockedKeysError(Exception):
    """Nobody was let in, and these files of keys were not tried because they have a passphrase."""

    def __init__(self, files: Sequence[Path]) -> None:
        super().__init__(files)
        self.files = files


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
        self._config = _config(settings.directory / "config")

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
            raise MusterError(f"the jumps of {target} lead in a circle: {' -> '.join((*passed, hop.name))}")
        over: paramiko.Transport | None = None
        before: tuple[Target, ...] = ()
        for jump in hop.jumps:
            before = (*before, jump)
            over = await self._bastion(jump, before, (*passed, hop.name))
        return await self._enter(hop, over)

    async def _bastion(self, jump: Target, way: tuple[Target, ...], passed: tuple[str, ...]) -> paramiko.Transport:
        """The one connection to a bastion, reached over those before it on the way."""
        # A way of one jump is looked up like a target, as that jump may need jumps of its own.
        target = _with_jumps(jump, way[:-1] or None)
        async with self._bastions.setdefault(target, asyncio.Lock()):
            known = self._open.get(target)
            if known is None or not known.is_active():
                self._open[target] = await self._reach(target, passed)
            return self._open[target]

    async def _enter(self, hop: _Hop, over: paramiko.Transport | None) -> paramiko.Transport:
        for _ in range(_TRIES + 2):
            attempt = _Attempt(hop, over, self._settings, self._unlocked)
            try:
                return await attempt.run()
            except _UnknownKeyError as unknown:
                await self._learn(hop, unknown.key)
            except _LockedKeysError as locked:
                await self._unlock(locked.files)
        raise PermissionDeniedError(f"{hop.name} lets nobody in with the keys that are there")

    async def _learn(self, hop: _Hop, key: HostKey) -> None:
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
                self._unlocked[file] = await asyncio.to_thread(paramiko.PKey.from_path, file, word)
            except (paramiko.SSHException, ValueError):
                continue
            return
        raise PermissionDeniedError(f"this is not the passphrase of {file}")

    def _hop(self, target: Target) -> _Hop:
        said = self._config.lookup(target.host)
        directory = self._settings.directory
        keys = [target.key] if target.key is not None else [Path(each) for each in said.get("identityfile", ())]
        keys = [each.expanduser() for each in keys] or [directory / name for name in _DEFAULT_KEYS]
        jump = said.get("proxyjump", "none")
        jumps = target.jumps if target.jumps is not None else () if jump == "none" else parse_jumps(jump)
        own = [Path(each).expanduser() for each in said.get("userknownhostsfile", "").split()]
        return _Hop(
            target=target,
            host=said.get("hostname", target.host),
            port=target.port or int(said.get("port", SSH_PORT)),
            user=target.user or said.get("user") or getpass.getuser(),
            keys=tuple(keys),
            known_hosts=(*(own or [directory / "known_hosts"]), self._settings.system_known_hosts),
            jumps=jumps,
        )


class SshExecutor:
    """Runs commands over one connection."""

    def __init__(self, name: str, transport: paramiko.Transport) -> None:
        self.name = name
        self._transport = transport

    async def run(self, command: str, *, stdin: Iterable[Stdin] = (), limit: float = QUICK) -> Output:
        """Run a command of the POSIX shell; raises UnavailableError where it has not ended in time."""
        exchange = _Exchange(self._transport, command, stdin, limit)
        try:
            return await asyncio.to_thread(exchange.run)
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise UnavailableError(f"the connection broke: {error}") from error
        finally:
            exchange.close()  # the thread of a cancelled call ends by this

    async def close(self) -> None:
        """Close the connection."""
        await asyncio.to_thread(self._transport.close)


class _Attempt:
    """One try to get in; all of it blocks and is called in a thread."""

    def __init__(
        self,
        hop: _Hop,
        over: paramiko.Transport | None,
        settings: SshSettings,
        unlocked: dict[Path, paramiko.PKey],
    ) -> None:
        self._hop = hop
        self._over = over
        self._settings = settings
        self._unlocked = dict(unlocked)
        self._transport: paramiko.Transport | None = None

    async def run(self) -> paramiko.Transport:
        """The connection, once the server has been believed and has let us in."""
        done = False
        try:
            transport = await asyncio.to_thread(self._enter)
            done = True
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise UnavailableError(f"{self._hop.name} cannot be reached by SSH: {_cause(error)}") from error
        finally:
            if not done and self._transport is not None:
                self._transport.close()
        return transport

    def _enter(self) -> paramiko.Transport:
        lines = read_lines(self._hop.known_hosts)
        self._transport = transport = paramiko.Transport(self._socket())
        transport.banner_timeout = transport.auth_timeout = transport.handshake_timeout = CONNECT
        name = name_of(self._hop.host, self._hop.port)
        _prefer(transport, kinds_known(lines, name))
        transport.start_client(timeout=CONNECT)
        shown = transport.get_remote_server_key()
        self._believe(lines, HostKey(name=name, kind=shown.get_name(), key=shown.get_base64()))
        self._prove(transport)
        transport.set_keepalive(_ALIVE)
        return transport

    def _socket(self) -> "socket.socket | paramiko.Channel":
        end = (self._hop.host, self._hop.port)
        if self._over is None:
            return socket.create_connection(end, timeout=CONNECT)
        return self._over.open_channel("direct-tcpip", end, ("127.0.0.1", 0), timeout=CONNECT)

    def _believe(self, lines: Sequence[str], key: HostKey) -> None:
        match judge(lines, key):
            case Verdict.KNOWN:
                return
            case Verdict.UNKNOWN:
                raise _UnknownKeyError(key)
            case Verdict.REVOKED:
                raise HostKeyRefusedError(f"{key.name} shows a host key that is marked as revoked: {key.fingerprint}")
            case Verdict.CHANGED:
                raise HostKeyRefusedError(
                    f"the host key of {key.name} has changed to {key.kind} {key.fingerprint}; either the computer was "
                    "installed anew, or somebody stands between. If you are sure: "
                    f"`ssh-keygen -R '{key.name}' -f {self._hop.known_hosts[0]}`, then try again"
                )

    def _prove(self, transport: paramiko.Transport) -> None:
        locked: list[Path] = []
        for key in self._keys(locked):
            with suppress(paramiko.AuthenticationException):
                transport.auth_publickey(self._hop.user, key)
            if transport.is_authenticated():
                return
            if not transport.is_active():
                break  # too many keys for this server
        if locked:
            raise _LockedKeysError(locked)
        raise PermissionDeniedError(
            f"{self._hop.name} lets nobody in with the keys that are there; give one with --key, or put it into the "
            "SSH agent (ssh-add), and its public half into ~/.ssh/authorized_keys there"
        )

    def _keys(self, locked: list[Path]) -> Iterator[paramiko.PKey]:
        """Keys from files, those of the agent; files that need a passphrase are noted in `locked`."""
        for file in self._hop.keys:
            if file in self._unlocked:
                yield self._unlocked[file]
                continue
            try:
                yield paramiko.PKey.from_path(file)
            except PasswordRequiredException:
                locked.append(file)
            except FileNotFoundError:
                if file == self._hop.target.key:
                    raise MusterError(f"there is no key file {file}") from None
            except (paramiko.SSHException, ValueError, TypeError) as error:
                # An encrypted key of the old PEM form is refused with TypeError by the library below.
                if isinstance(error, TypeError):
                    locked.append(file)
                elif file == self._hop.target.key:
                    raise MusterError(f"{file} is no private key of a kind that can be used: {error}") from error
        if self._settings.agent:
            with suppress(paramiko.SSHException, OSError):
                yield from paramiko.Agent().get_keys()


class _Exchange:
    """One command: what it reads, what it says, and how it ends; `run` blocks."""

    def __init__(self, transport: paramiko.Transport, command: str, stdin: Iterable[Stdin], limit: float) -> None:
        self._transport = transport
        self._command = command
        self._pieces = _pieces(stdin)
        self._limit = limit
        self._out = bytearray()
        self._err = bytearray()
        self._channel: paramiko.Channel | None = None
        self._closed = False

    def run(self) -> Output:
        """How it ended; raises UnavailableError where it has not in time."""
        until = time.monotonic() + self._limit
        channel = self._channel = self._transport.open_session(timeout=CONNECT)
        channel.settimeout(CONNECT)
        channel.exec_command(self._command)
        left = b""
        writing = True
        while not (channel.exit_status_ready() and channel.closed):
            if self._closed or time.monotonic() > until:
                raise UnavailableError(f"a command did not end within {self._limit:g} s")
            self._read(channel)
            if writing:
                left = left or next(self._pieces, b"")
                writing, left = self._write(channel, left)
            # Nothing wakes for room to write, so that is looked for more often.
            select.select([channel], [], [], 0.002 if writing and left else 0.1)
            if channel.exit_status_ready() and channel.eof_received:
                break
        self._read(channel)
        return Output(
            code=channel.recv_exit_status(),
            out=self._out.decode(errors="replace"),
            err=self._err.decode(errors="replace"),
        )

    def close(self) -> None:
        """End it, wherever it is."""
        self._closed = True
        if self._channel is not None:
            self._channel.close()

    def _read(self, channel: paramiko.Channel) -> None:
        while channel.recv_ready():
            self._keep(self._out, channel.recv(_PIECE))
        while channel.recv_stderr_ready():
            self._keep(self._err, channel.recv_stderr(_PIECE))

    @staticmethod
    def _keep(kept: bytearray, more: bytes) -> None:
        kept += more[: max(0, _MOST_OUTPUT - len(kept))]

    @staticmethod
    def _write(channel: paramiko.Channel, left: bytes) -> tuple[bool, bytes]:
        """Whether there is more to write, and what."""
        if not left:
            channel.shutdown_write()
            return False, b""
        if not channel.send_ready():
            return True, left
        try:
            return True, left[channel.send(left) :]
        except OSError:
            return False, b""  # it reads no more; its exit code says whether that is all right


def _pieces(stdin: Iterable[Stdin]) -> Iterator[bytes]:
    for part in stdin:
        if isinstance(part, bytes):
            yield from (part[start : start + _PIECE] for start in range(0, len(part), _PIECE))
            continue
        with part.open("rb") as file:
            while piece := file.read(_PIECE):
                yield piece


def _prefer(transport: paramiko.Transport, known: frozenset[str]) -> None:
    """Have the server show a key of a kind that is known, if it has one."""
    if not known:
        return
    options = transport.get_security_options()
    alike = {"rsa-sha2-256": "ssh-rsa", "rsa-sha2-512": "ssh-rsa"}
    options.key_types = sorted(options.key_types, key=lambda kind: alike.get(kind, kind) not in known)


def _with_jumps(jump: Target, jumps: tuple[Target, ...] | None) -> Target:
    return Target(host=jump.host, user=jump.user, port=jump.port, key=jump.key, jumps=jumps)


def _config(file: Path) -> paramiko.SSHConfig:
    if not file.is_file():
        return paramiko.SSHConfig()
    try:
        return paramiko.SSHConfig.from_path(str(file))
    except (paramiko.ConfigParseError, OSError, ImportError) as error:
        raise MusterError(f"{file} cannot be read: {error}") from error


def _cause(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {CONNECT:g} s"
    return str(error) or type(error).__name__
