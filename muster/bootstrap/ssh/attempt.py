"""One try to get into a computer: reach it, believe its key or not, prove who one is."""

import asyncio
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import paramiko
from paramiko.ssh_exception import PasswordRequiredException

from muster.bootstrap.ssh.known_hosts import HostKey, Verdict, judge, kinds_known, name_of, read_lines
from muster.bootstrap.ssh.target import Target
from muster.domain.errors import MusterError, PermissionDeniedError, UnavailableError

_ENDING = 5.0
"""Seconds in which a ProxyCommand ends; then it is killed."""
_ALIVE = 15
"""Seconds between signs of life, so that firewalls keep the connection while somebody reads the plan."""


class HostKeyRefusedError(PermissionDeniedError):
    """A server shows a key that is not believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """A target with all that was left open filled in."""

    target: Target
    host: str
    port: int
    user: str
    keys: tuple[Path, ...]
    known_hosts: tuple[Path, ...]
    jumps: tuple[Target, ...]
    alias: str | None = None
    """Under which name its host key is known; None: under that of the host and the port."""
    proxy_command: str | None = None
    """The program whose input and output lead there; None: a connection of our own does."""

    @property
    def key_name(self) -> str:
        """How known_hosts names it."""
        return self.alias or name_of(self.host, self.port)

    @property
    def name(self) -> str:
        """The machine's name, for people."""
        return f"{self.user}@{self.host}:{self.port}"


class UnknownKeyError(Exception):
    """Nothing is known of a server, and this is its key."""

    def __init__(self, key: HostKey) -> None:
        super().__init__(key)
        self.key = key


class LockedKeyError(Exception):
    """A file of a key has a passphrase."""


class LockedKeysError(Exception):
    """Nobody was let in, and these files of keys were not tried because they have a passphrase."""

    def __init__(self, files: Sequence[Path]) -> None:
        super().__init__(files)
        self.files = files


class ConnectionAttempt:
    """One try to get in; all of it blocks and is called in a thread."""

    def __init__(
        self,
        hop: Hop,
        over: paramiko.Transport | None,
        unlocked: dict[Path, paramiko.PKey],
        *,
        agent: bool,
        within: float,
    ) -> None:
        self._hop = hop
        self._over = over
        self._agent = agent
        self._within = within
        self._unlocked = dict(unlocked)
        self._transport: paramiko.Transport | None = None

    async def run(self) -> paramiko.Transport:
        """The connection, once the server has been believed and has let us in."""
        done = False
        try:
            transport = await asyncio.to_thread(self._enter)
            done = True
        except (paramiko.SSHException, OSError, EOFError) as error:
            raise UnavailableError(f"{self._hop.name} cannot be reached by SSH: {self._cause(error)}") from error
        finally:
            if not done and self._transport is not None:
                self._transport.close()
        return transport

    def _enter(self) -> paramiko.Transport:
        lines = read_lines(self._hop.known_hosts)
        self._transport = transport = paramiko.Transport(self._socket())
        transport.banner_timeout = transport.auth_timeout = transport.handshake_timeout = self._within
        name = self._hop.key_name
        _prefer(transport, kinds_known(lines, name))
        transport.start_client(timeout=self._within)
        shown = transport.get_remote_server_key()
        self._believe(lines, HostKey(name=name, kind=shown.get_name(), key=shown.get_base64()))
        self._prove(transport)
        transport.set_keepalive(_ALIVE)
        return transport

    def _socket(self) -> "socket.socket | paramiko.Channel | paramiko.ProxyCommand":
        end = (self._hop.host, self._hop.port)
        if self._hop.proxy_command is not None and self._over is None:
            return _ProgramSocket(self._hop.proxy_command)
        if self._over is None:
            return socket.create_connection(end, timeout=self._within)
        return self._over.open_channel("direct-tcpip", end, ("127.0.0.1", 0), timeout=self._within)

    def _believe(self, lines: Sequence[str], key: HostKey) -> None:
        match judge(lines, key):
            case Verdict.KNOWN:
                return
            case Verdict.UNKNOWN:
                raise UnknownKeyError(key)
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
            raise LockedKeysError(locked)
        raise PermissionDeniedError(
            f"{self._hop.name} lets nobody in with the keys that are there; give one with --key, or put it into the "
            "SSH agent (ssh-add), and its public half into ~/.ssh/authorized_keys there"
        )

    def _cause(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"no answer within {self._within:g} s"
        return str(error) or type(error).__name__

    def _keys(self, locked: list[Path]) -> Iterator[paramiko.PKey]:
        """Keys from files, those of the agent; files that need a passphrase are noted in `locked`."""
        for file in self._hop.keys:
            if file in self._unlocked:
                yield self._unlocked[file]
                continue
            try:
                yield load_key(file)
            except FileNotFoundError:
                if file == self._hop.target.key:
                    raise MusterError(f"there is no key file {file}") from None
            except LockedKeyError:
                locked.append(file)
            except (paramiko.SSHException, ValueError, OSError) as error:
                if file == self._hop.target.key:
                    raise MusterError(f"{file} is no private key of a kind that can be used: {error}") from error
        if self._agent:
            with suppress(paramiko.SSHException, OSError):
                yield from paramiko.Agent().get_keys()


class _ProgramSocket(paramiko.ProxyCommand):
    """A program whose input and output lead to a server; nothing of it is left once it is closed."""

    def close(self) -> None:
        """End the program."""
        with suppress(ProcessLookupError):
            self.process.terminate()
        try:
            self.process.wait(_ENDING)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


def _prefer(transport: paramiko.Transport, known: frozenset[str]) -> None:
    """Have the server show a key of a kind that is known, if it has one."""
    if not known:
        return
    options = transport.get_security_options()
    alike = {"rsa-sha2-256": "ssh-rsa", "rsa-sha2-512": "ssh-rsa"}
    options.key_types = sorted(options.key_types, key=lambda kind: alike.get(kind, kind) not in known)


def load_key(file: Path, passphrase: str | None = None) -> paramiko.PKey:
    """The private key in a file; raises LockedKeyError where it has a passphrase and none is given. Blocks."""
    try:
        # The library below wants bytes, whatever the annotation says.
        return paramiko.PKey.from_path(file, None if passphrase is None else passphrase.encode())  # type: ignore[arg-type]  # the stubs know no bytes
    except PasswordRequiredException as error:
        raise LockedKeyError from error
    except TypeError as error:
        if passphrase is not None:
            raise  # nothing that a user could do about
        raise LockedKeyError from error
