"""What opens a repository, in memory alone: no file on a disk has it, and no argument of a program."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from muster.domain.data.code import GitUrl, is_server_of
from muster.transfer.git.faults import GitRefusedError

_PRIVATE = 0o600


@dataclass(frozen=True, slots=True, kw_only=True)
class GitKeys:
    """What opens repositories; all of it empty: what everybody may read."""

    username: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    ssh_key: bytes = field(default=b"", repr=False)
    known_hosts: bytes = field(default=b"", repr=False)

    @property
    def values(self) -> tuple[str, ...]:
        """What must not be shown."""
        return (self.token,) if self.token else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenKeys:
    """The same as git is given it: files of SSH lie in memory, and are gone with this program."""

    username: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    key_file: str = ""
    hosts_file: str = ""


@contextmanager
def opened(url: GitUrl, keys: GitKeys) -> Iterator[OpenKeys]:
    """Keys as git is given them. Raises GitRefusedError where they are not those of such a repository."""
    if not url.is_ssh:
        yield OpenKeys(username=keys.username, token=keys.token)
        return
    if not (keys.ssh_key and keys.known_hosts):
        raise GitRefusedError(f"{url.host} is reached over ssh, for which the secret must have ssh-key and known-hosts")
    with ExitStack() as files:
        key_file = files.enter_context(_in_memory("git-key", keys.ssh_key.rstrip(b"\n") + b"\n"))
        hosts_file = files.enter_context(_in_memory("git-hosts", keys.known_hosts.rstrip(b"\n") + b"\n"))
        yield OpenKeys(key_file=key_file, hosts_file=hosts_file)


def keys_shown_to(url: GitUrl, values: Mapping[str, bytes]) -> GitKeys:
    """What of a secret a server is shown: a token only if it is the server of that, a key only if its host is known."""
    is_for = url.is_ssh or is_server_of(_text(values, "server"), url)
    return keys_of(url, values) if is_for else GitKeys()


def keys_of(url: GitUrl, values: Mapping[str, bytes]) -> GitKeys:
    """What of a secret of kind `git` opens a repository there."""
    if url.is_ssh:
        return GitKeys(ssh_key=values.get("ssh-key", b""), known_hosts=values.get("known-hosts", b""))
    return GitKeys(username=_text(values, "username"), token=_text(values, "token"))


def _text(values: Mapping[str, bytes], key: str) -> str:
    return values.get(key, b"").decode("utf-8", "surrogateescape")


@contextmanager
def _in_memory(name: str, content: bytes) -> Iterator[str]:
    """A file that no directory has; programs of the same user open it by its path."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC)
    try:
        os.fchmod(descriptor, _PRIVATE)
        os.write(descriptor, content)
        yield f"/proc/{os.getpid()}/fd/{descriptor}"
    finally:
        os.close(descriptor)
