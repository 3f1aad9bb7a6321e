"""Code that a job brings along: a folder of the client or a commit of a repository, which becomes a content tree."""

import re
from dataclasses import dataclass

CODE_DIRECTORY = "/muster/code"
"""Where containers find it."""

CODE_DIRECTORY_VARIABLE = "MUSTER_CODE_DIR"
"""The variable that tells user code where it is."""

CODE_COMMIT_VARIABLE = "MUSTER_CODE_COMMIT"
"""The variable that tells user code from which commit of a repository it came."""

COMMIT_SHOWN = 12
"""Digits of a commit that people are shown."""

LONGEST_GIT_URL = 2048
"""Characters of the address of a repository."""

GIT_URL = (
    r"(https://|ssh://([A-Za-z0-9_][A-Za-z0-9_.-]*@)?)"
    r"([A-Za-z0-9_][A-Za-z0-9_.-]*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?/[A-Za-z0-9_.~%+@/-]+"
)
"""The pattern of an address, as far as a pattern can tell."""

_PARTS = re.compile(
    r"(?P<scheme>https|ssh)://((?P<user>[^@/]+)@)?(?P<host>\[[^\]]+\]|[^:/@\[]+)(:(?P<port>[0-9]+))?(?P<path>/.*)"
)
_PORTS = {"https": 443, "ssh": 22}
_MOST_PORT = 65535
GIT_COMMIT = r"[0-9a-f]{40}"
"""The pattern of a commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitCode:
    """A commit of a Git repository."""

    url: str
    """Where the repository is, with `https://` or `ssh://`."""
    ref: str = ""
    """The branch, tag or whole commit that was asked for; empty: what the repository has as its HEAD."""
    commit: str = ""
    """The commit that counts; empty: nobody has looked yet, or said so."""
    path: str = ""
    """The directory of the repository that is wanted; empty: all of it."""
    secret: str = ""
    """The secret of the project that opens the repository; empty: everybody may read it."""
    submodules: bool = False
    """Whether the repositories that it names as its submodules come along."""
    lfs: bool = False
    """Whether large files come along, for which small ones of Git LFS stand in it."""

    @property
    def wanted(self) -> str:
        """What the repository is asked for."""
        return self.commit or self.ref or "HEAD"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCode:
    """What each execution of a role gets a copy of: a folder, or a commit of a repository."""

    folder: str = ""
    """Where the client has it; only until it was sent."""
    tree: str = ""
    """SHA-256 of its content tree; empty: not sent, or not fetched yet."""
    size: int = 0
    """Bytes of the canonical form of the tree."""
    git: GitCode | None = None
    """Where it comes from; None: from a folder."""
    writable: bool = True
    """Whether each execution has a copy to which it may write; else those of a node share one directory."""

    @property
    def is_awaited(self) -> bool:
        """Whether it is in a repository, and nobody has fetched it yet."""
        return self.git is not None and not self.tree

    @property
    def secret(self) -> str:
        """The secret that opens its repository; empty: none does."""
        return "" if self.git is None else self.git.secret


def git_text(code: GitCode) -> str:
    """A commit of a repository for people: `https://git.example.org/train.git main 1f2e3d4c5b6a in trainer`."""
    said = [code.url, *([code.ref] if code.ref and code.ref != code.commit else []), code.commit[:COMMIT_SHOWN]]
    place = f" in {code.path}" if code.path else ""
    more = ["submodules"] * code.submodules + ["large files"] * code.lfs
    return " ".join(each for each in said if each) + place + (f" with {' and '.join(more)}" if more else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class GitUrl:
    """The address of a repository in its parts."""

    scheme: str
    host: str
    """A name, or a numeric address without brackets."""
    port: int
    path: str

    @property
    def is_ssh(self) -> bool:
        """Whether a key opens it."""
        return self.scheme == "ssh"


def read_git_url(url: str) -> GitUrl | None:
    """The parts of an address; None for what is none."""
    if len(url) > LONGEST_GIT_URL or re.fullmatch(GIT_URL, url) is None:
        return None
    found = _PARTS.fullmatch(url)
    if found is None:
        return None
    port = int(found["port"] or _PORTS[found["scheme"]])
    if not 0 < port <= _MOST_PORT:
        return None
    return GitUrl(scheme=found["scheme"], host=found["host"].strip("[]"), port=port, path=found["path"])


def is_server_of(server: str, url: GitUrl) -> bool:
    """Whether what a secret says of its server means that of a repository, or what is above the repository there."""
    said = server.strip().removesuffix("/")
    scheme, _, rest = said.rpartition("://")
    if scheme not in {"", url.scheme}:
        return False
    authority, slash, above = rest.partition("/")
    plain = url.port == _PORTS[url.scheme]
    host = f"[{url.host}]" if ":" in url.host else url.host
    names = {f"{host}:{url.port}".lower(), *([host.lower()] if plain else [])}
    return authority.lower() in names and (not slash or f"{url.path}/".startswith(f"/{above}/"))
