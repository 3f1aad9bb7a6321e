"""What a commit says of its submodules: which there are, and where their repositories are."""

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from muster.domain.data.code import read_git_url
from muster.transfer.git.faults import GitRefusedError

DEEPEST_SUBMODULE = 5
"""How many submodules may lie within each other."""
MOST_SUBMODULES = 100
"""Submodules of one commit, with those that lie in them."""
SHOWN_OF_SUBMODULE = 200
"""Characters of the URL of a submodule that people are shown."""

_SHORT_FORM = re.compile(r"(?P<user>[A-Za-z0-9_.-]+)@(?P<host>[A-Za-z0-9_.-]+):(?P<path>[^/:].*)")
_RELATIVE = re.compile(r"\.\.?(/|$)")
_ROOT = re.compile(r"(?P<root>[a-z]+://[^/]+)(?P<path>/.*)?")
_WITHOUT_CREDENTIALS = re.compile(r"//[^/]*@")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmoduleLink:
    """A place in a commit at which another repository belongs."""

    path: str
    """The place below the root of the commit."""
    commit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Submodule:
    """A submodule that is to be fetched."""

    path: str
    """The place below the root of the repository that has it."""
    url: str
    commit: str


def read_gitmodules(answer: bytes) -> Mapping[str, Mapping[str, str]]:
    """The keys of each submodule by its path, of what `git config --null --list` says of `.gitmodules`."""
    by_name = dict[str, dict[str, str]]()
    for line in answer.decode(errors="replace").split("\0"):
        name, _, value = line.partition("\n")
        section, _, rest = name.partition(".")
        submodule, _, key = rest.rpartition(".")
        if section == "submodule" and submodule:
            by_name.setdefault(submodule, {})[key] = value
    return {keys["path"].rstrip("/"): keys for keys in by_name.values() if "path" in keys}


def submodules_of(
    url: str, links: Iterable[SubmoduleLink], told: Mapping[str, Mapping[str, str]]
) -> Iterable[Submodule]:
    """The submodules of a repository at a URL; those that say `update = none` are left out. Raises GitRefusedError."""
    for link in links:
        keys = told.get(link.path, {})
        if keys.get("update") == "none":
            continue
        if not keys.get("url"):
            raise GitRefusedError(f"the submodule {link.path!r} has no url in .gitmodules")
        yield Submodule(path=link.path, url=_address(url, link.path, keys["url"]), commit=link.commit)


def shown_address(url: str) -> str:
    """The URL of a submodule for people: no user, no password and no query."""
    plain = _WITHOUT_CREDENTIALS.sub("//", url).partition("?")[0]
    return "".join(each if each.isprintable() else " " for each in plain)[:SHOWN_OF_SUBMODULE]


def _address(parent: str, path: str, said: str) -> str:
    """Where the repository of a submodule is; `parent` is the URL of the repository that names it."""
    short = _SHORT_FORM.fullmatch(said)
    if _RELATIVE.match(said):
        found = _resolved(parent, said)
    elif short is not None:
        found = f"ssh://{short['user']}@{short['host']}/{short['path']}"
    else:
        found = said
    if found is None or read_git_url(found) is None:
        raise GitRefusedError(
            f"the submodule {path!r} is at {shown_address(said)!r}; only https:// and ssh:// without a password are "
            "taken, and what is relative to them"
        )
    return found


def _resolved(parent: str, said: str) -> str | None:
    """What a relative URL means, as git reads it; None: it leads above the root of the server."""
    whole = _ROOT.fullmatch(parent)
    if whole is None:
        return None
    steps = [each for each in (whole["path"] or "").split("/") if each]
    for step in said.split("/"):
        if step == ".." and not steps:
            return None
        if step == "..":
            steps.pop()
        elif step not in {"", "."}:
            steps.append(step)
    return f"{whole['root']}{posixpath.join('/', *steps)}" if steps else None
