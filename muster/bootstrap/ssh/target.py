"""Where SSH is to go: who, to which computer, over which others."""

import re
from dataclasses import dataclass
from pathlib import Path

from muster.domain.errors import InvalidJobError

_LAST_PORT = 65535
_TARGET = re.compile(r"(?:(?P<user>[^@\s/]+)@)?(?:\[(?P<bracketed>[^\]\s]+)\]|(?P<plain>[^@:\s/]+))(?::(?P<port>\d+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One end of an SSH connection as the user names it; what is None comes from `~/.ssh/config` or SSH's defaults."""

    host: str
    user: str | None = None
    port: int | None = None
    key: Path | None = None
    """File of the private key that is tried first."""
    jumps: tuple["Target", ...] | None = None
    """Over which it is reached, in this order; None: as `ProxyJump` says."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (f"{self.user}@" if self.user else "") + host + (f":{self.port}" if self.port else "")


def parse_target(text: str) -> Target:
    """`[USER@]HOST[:PORT]`; an IPv6 address with a port stands in brackets."""
    if text.count(":") > 1 and "[" not in text:
        user, at, host = text.rpartition("@")
        return Target(host=host, user=user if at else None)
    match = _TARGET.fullmatch(text)
    if match is None or not 1 <= int(match["port"] or 22) <= _LAST_PORT or text.startswith("-"):
        raise InvalidJobError(f"{text!r} is nothing that SSH could reach; write [USER@]HOST[:PORT]")
    port = None if match["port"] is None else int(match["port"])
    return Target(host=match["bracketed"] or match["plain"], user=match["user"], port=port)


def parse_jumps(text: str) -> tuple[Target, ...]:
    """`[USER@]HOST[:PORT],…` in the order in which they are passed."""
    return tuple(parse_target(part.strip()) for part in text.split(","))
