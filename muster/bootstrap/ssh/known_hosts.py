"""What files of known host keys say about a key; the rules of OpenSSH, read strictly."""

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path

SSH_PORT = 22

_HASHED = "|1|"


class Verdict(Enum):
    """How a key stands to what is known."""

    KNOWN = "known"
    UNKNOWN = "unknown"  #: nothing is known of this name
    CHANGED = "changed"  #: other keys are known of this name, this one is not
    REVOKED = "revoked"  #: this key is never to be believed


@dataclass(frozen=True, slots=True, kw_only=True)
class HostKey:
    """The key with which an SSH server proves who it is."""

    name: str
    """The server's name in known_hosts: `host`, or `[host]:port` where the port is not 22."""
    kind: str
    """Like `ssh-ed25519`."""
    key: str
    """The public key, in base64."""

    @property
    def fingerprint(self) -> str:
        """`SHA256:…`, as ssh-keygen -l shows it."""
        digest = hashlib.sha256(base64.b64decode(self.key)).digest()
        return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")

    @property
    def line(self) -> str:
        """The line of known_hosts that makes it known."""
        return f"{self.name} {self.kind} {self.key}"


def name_of(host: str, port: int) -> str:
    """How known_hosts names a server."""
    return host if port == SSH_PORT else f"[{host}]:{port}"


def read_lines(files: Iterable[Path]) -> list[str]:
    """The lines of all files that are there. Blocks."""
    lines: list[str] = []
    for file in files:
        if file.is_file():
            lines += file.read_text(errors="replace").splitlines()
    return lines


def judge(lines: Iterable[str], shown: HostKey) -> Verdict:
    """Whether `shown` is to be believed; one key that is known of a name makes all others of it strange."""
    verdict = Verdict.UNKNOWN
    for marker, kind, key in _entries(lines, shown.name):
        same = (kind, key) == (shown.kind, shown.key)
        if marker == "@revoked" and same:
            return Verdict.REVOKED
        if marker == "" and same:
            verdict = Verdict.KNOWN
        elif marker == "" and verdict is Verdict.UNKNOWN:
            verdict = Verdict.CHANGED
    return verdict


def kinds_known(lines: Iterable[str], name: str) -> frozenset[str]:
    """The kinds of keys that are known of a name: the server is to show one of these."""
    return frozenset(kind for marker, kind, _ in _entries(lines, name) if marker == "")


def add(file: Path, key: HostKey) -> None:
    """Make a key known. Blocks."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(handle, "r+") as known:
        text = known.read()
        known.write(("" if not text or text.endswith("\n") else "\n") + key.line + "\n")


def _entries(lines: Iterable[str], name: str) -> Iterator[tuple[str, str, str]]:
    for line in lines:
        words = line.split()
        marker = words.pop(0) if words and words[0].startswith("@") else ""
        if len(words) >= 3 and not words[0].startswith("#") and _names(words[0], name):  # noqa: PLR2004 - names, kind, key
            yield marker, words[1], words[2]


def _names(patterns: str, name: str) -> bool:
    if patterns.startswith(_HASHED):
        return _is_hash_of(patterns, name)
    found = False
    for pattern in patterns.split(","):
        # Brackets belong to names with a port; fnmatch would take them for a set of characters.
        glob = pattern.removeprefix("!").lower().replace("[", "[[]")
        if fnmatchcase(name.lower(), glob):
            if pattern.startswith("!"):
                return False
            found = True
    return found


def _is_hash_of(pattern: str, name: str) -> bool:
    try:
        salt, wanted = (base64.b64decode(part) for part in pattern.removeprefix(_HASHED).split("|"))
    except (ValueError, binascii.Error):
        return False
    return hmac.compare_digest(hmac.new(salt, name.encode(), hashlib.sha1).digest(), wanted)
