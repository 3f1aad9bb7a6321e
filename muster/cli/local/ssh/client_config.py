"""How `ssh` is told of hosts of Muster: its settings as text and as options, and the line that includes them."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from muster.cli.local.ssh.host_names import HOST_PATTERN

_WRITTEN_BY = "# Written by `muster ssh-config add`; `muster ssh-config remove` takes it away."
_BLOCK = re.compile(rb"\s*(host|match)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SshHostsSettings:
    """What `ssh` has to know of this program."""

    proxy: Sequence[str]
    """The command that serves SSH on its stdin and stdout; the host name comes behind."""
    known_hosts: Path


def known_hosts_file(directory: Path) -> Path:
    """Where `ssh` finds the key of every host of Muster."""
    return directory / "known_hosts"


def client_options(settings: SshHostsSettings) -> Mapping[str, str]:
    """The options of `ssh` for every host of Muster, by their names in ssh_config(5)."""
    known_hosts = f'"{_literal(str(settings.known_hosts))}"'
    return {
        "ProxyCommand": f"{_literal(shlex.join(settings.proxy))} %n",
        "User": "muster",  # shown in prompts alone; who one is there is decided by the job
        "UserKnownHostsFile": known_hosts,
        "GlobalKnownHostsFile": "none",
        "StrictHostKeyChecking": "yes",
        "HostKeyAlgorithms": "ssh-ed25519",
        "Ciphers": "aes128-gcm@openssh.com",  # half of the work of the usual one
        "KexAlgorithms": "curve25519-sha256",
        "Compression": "no",
        "CanonicalizeHostname": "no",
        "UpdateHostKeys": "no",
        "ServerAliveInterval": "0",  # the pipe to this program cannot break; what breaks is resumed behind it
    }


def config_text(settings: SshHostsSettings) -> str:
    """A file that `ssh` includes."""
    lines = [f"  {name} {value}" for name, value in client_options(settings).items()]
    return "\n".join((_WRITTEN_BY, f"Host {HOST_PATTERN}", *lines, ""))


def ssh_command(ssh: str, settings: SshHostsSettings, host: str, words: Sequence[str]) -> list[str]:
    """`ssh` with these options and no file of settings; `words` are further options of it, and a command."""
    options = [part for name, value in client_options(settings).items() for part in ("-o", f"{name}={value}")]
    return [ssh, "-F", "none", *options, host, *words]


def include_line(config: Path, home: Path) -> str:
    """The line that includes a file of settings."""
    named = f"~/{config.relative_to(home)}" if config.is_relative_to(home) else str(config)
    return f'Include "{named}"' if any(each.isspace() for each in named) else f"Include {named}"


def has_include(content: bytes, line: str) -> bool:
    """Whether the line holds for all hosts: it stands before the first block."""
    for each in content.splitlines():
        if each.strip() == line.encode():
            return True
        if _BLOCK.match(each):
            return False
    return False


def with_include(content: bytes, line: str) -> bytes:
    """The file of the user with the line on top, unless it holds already."""
    return content if has_include(content, line) else f"{line}\n".encode() + content


def without_include(content: bytes, line: str) -> bytes:
    """The file of the user without the line, and otherwise as it was."""
    return b"".join(each for each in content.splitlines(keepends=True) if each.strip() != line.encode())


def _literal(text: str) -> str:
    """Text in which `ssh` replaces nothing."""
    return text.replace("%", "%%")
