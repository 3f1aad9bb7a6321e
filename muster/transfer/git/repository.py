"""A commit of a repository, fetched into a directory of this machine, and read as a content tree."""

import os
import shutil
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from muster.domain.data.code import GitCode, GitUrl, read_git_url
from muster.domain.data.tree import (
    LONGEST_CONTENT_PATH,
    ContentEntry,
    ContentKind,
    ContentTree,
    MalformedTreeError,
    content_tree,
    link_leads_out,
    refuse_bad_content_path,
)
from muster.domain.data.upload import CODE_LIMIT
from muster.domain.quantity import size_text
from muster.transfer.addresses import is_of_link, leads_to_link
from muster.transfer.folder import CODE_FILES
from muster.transfer.git import commands
from muster.transfer.git.access import GitKeys, opened
from muster.transfer.git.faults import GitAwayError, GitMissingError, GitRefusedError
from muster.transfer.git.program import GitProgram, RunningGit

_FILE, _PROGRAM, _LINK, _OTHER_COMMIT = "100644", "100755", "120000", "160000"
_OLD_FILE = "100664"
_READ = 1024 * 1024
_HEADER_FIELDS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class GitLimits:
    """How much of a repository is read, and how long that may take."""

    size: int = CODE_LIMIT
    files: int = CODE_FILES
    seconds: float = 3600.0
    stall: float = 300.0
    """Seconds without a byte of the server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedCommit:
    """A commit that is here."""

    commit: str
    tree: ContentTree
    files: "dict[str, Path]"
    """Where each content lies, by its SHA-256."""


@dataclass(frozen=True, slots=True)
class _Listed:
    """A file or link of a commit, before it is read."""

    path: str
    mode: str
    object: str
    size: int


def git_is_here() -> bool:
    """Whether this machine has the program."""
    return shutil.which("git") is not None


class GitFetch:
    """One attempt to fetch a commit, for a thread; whoever waits may stop it."""

    def __init__(self, code: GitCode, keys: GitKeys, directory: Path, limits: GitLimits | None = None) -> None:
        """`directory` is this attempt's alone; whoever made it removes it."""
        self._code = code
        self._keys = keys
        self._directory = directory
        self._limits = limits or GitLimits()
        self._program: GitProgram | None = None
        self._stopped = False

    def stop(self) -> None:
        """Have it end soon."""
        self._stopped = True
        if self._program is not None:
            self._program.stop()

    def run(self) -> FetchedCommit:
        """The commit. Raises GitRefusedError, GitAwayError, GitMissingError, or OSError where the disk is full."""
        if not git_is_here():
            raise GitMissingError("this node has no git: install the package `git` on it")
        url = read_git_url(self._code.url)
        if url is None:
            raise GitRefusedError("that is no address of a repository")
        address = _address_of(url)
        repository, home = self._directory / "repository", self._directory / "home"
        home.mkdir(mode=0o700)
        stall = self._limits.stall
        with opened(url, self._keys) as keys:
            settings = commands.network_settings(url, address, keys, stall)
            self._program = program = GitProgram(
                directory=self._directory,
                environment=dict(commands.git_environment(home, url, address, keys, stall)),
                command=lambda words: commands.git_command(repository, words, settings),
                secrets=self._keys.values,
            )
            if self._stopped:
                raise GitAwayError("it was stopped")
            program.output(commands.init_words(repository), self._limits.seconds)
            program.output(commands.fetch_words(self._code), self._limits.seconds)
        commit = program.output(commands.commit_words(), self._limits.seconds).decode().strip()
        return self._read(program, commit)

    def _read(self, program: GitProgram, commit: str) -> FetchedCommit:
        listed = self._listed(program, commit)
        contents = self._directory / "contents"
        contents.mkdir(mode=0o700)
        entries, files = list[ContentEntry](), dict[str, Path]()
        objects = list(dict.fromkeys(each.object for each in listed))
        read = dict[str, tuple[str, int]]()
        with program.started(commands.read_words(), self._limits.seconds, objects) as running:
            for name in objects:
                read[name] = _write(running, name, contents / name)
            running.done()
        for each in listed:
            digest, size = read[each.object]
            place = contents / each.object
            if each.mode == _LINK:
                target = _target(each.path, place, size)
                entries.append(ContentEntry(path=each.path, kind=ContentKind.LINK, content=target))
                continue
            kind = ContentKind.PROGRAM if each.mode == _PROGRAM else ContentKind.FILE
            entries.append(ContentEntry(path=each.path, kind=kind, size=size, content=digest))
            files[digest] = place
        try:
            tree = content_tree(entries)
        except MalformedTreeError as error:
            raise GitRefusedError(f"commit {commit} is no tree of files: {error}") from None
        return FetchedCommit(commit=commit, tree=tree, files=files)

    def _listed(self, program: GitProgram, commit: str) -> Sequence[_Listed]:
        """What stands in the wanted directory, as far as it is files and links."""
        path = self._code.path.strip("/")
        try:
            answer = program.output(commands.list_words(commit, path), self._limits.seconds)
        except GitAwayError as error:
            if not path:
                raise
            raise GitRefusedError(f"commit {commit} has no directory {path!r}") from error
        listed = [each for each in _lines(answer) if each.mode != _OTHER_COMMIT]
        size = sum(each.size for each in listed)
        if not listed:
            raise GitRefusedError(f"commit {commit} has no files{f' in {path!r}' if path else ''}")
        if size > self._limits.size:
            raise GitRefusedError(
                f"commit {commit} has {size_text(size)}; {size_text(self._limits.size)} are the most that is taken as "
                "code: name a directory of it with `path`, and have large files as inputs"
            )
        if len(listed) > self._limits.files:
            raise GitRefusedError(
                f"commit {commit} has {len(listed)} files; {self._limits.files} are the most that are taken as code: "
                "name a directory of it with `path`"
            )
        return listed


def _lines(answer: bytes) -> Iterator[_Listed]:
    """The lines of `ls-tree`, with paths that files can have. Raises GitRefusedError."""
    for line in answer.split(b"\0"):
        if not line:
            continue
        facts, _, raw = line.partition(b"\t")
        mode, _, name, size = facts.decode("ascii").split()
        try:
            path = raw.decode()
            refuse_bad_content_path(path)
        except UnicodeDecodeError:
            raise GitRefusedError(f"{raw!r} of it is no UTF-8: rename it") from None
        except MalformedTreeError as error:
            raise GitRefusedError(str(error)) from None
        if mode not in {_FILE, _OLD_FILE, _PROGRAM, _LINK, _OTHER_COMMIT}:
            raise GitRefusedError(f"{path!r} of it is neither a file nor a link")
        yield _Listed(path, mode, name, int(size) if size.isdecimal() else 0)


def _write(running: RunningGit, name: str, place: Path) -> tuple[str, int]:
    """Have the next object that git gives in a file: its SHA-256 and its bytes."""
    header = running.line().split()
    if len(header) != _HEADER_FIELDS or header[0].decode() != name or header[1] != b"blob":
        running.done()
        raise GitAwayError("git gave less than it had listed")
    size = left = int(header[2])
    content = sha256()
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        while left:
            data = running.read(min(left, _READ))
            if not data:
                running.done()
                raise GitAwayError("git ended before it had given all files")
            file.write(data)
            content.update(data)
            left -= len(data)
    running.read(1)  # the end of the line
    return content.hexdigest(), size


def _target(path: str, place: Path, size: int) -> str:
    """Where a link leads. Raises GitRefusedError where that is out of the code."""
    if size > LONGEST_CONTENT_PATH:
        raise GitRefusedError(f"{path!r} leads to what is no path")
    try:
        target = place.read_bytes().decode()
    except UnicodeDecodeError:
        raise GitRefusedError(f"{path!r} leads to what is no UTF-8") from None
    if link_leads_out(path, target):
        raise GitRefusedError(
            f"{path!r} leads to {target!r}, which is not in the code: put what it leads to into the repository"
        )
    return target


def _address_of(url: GitUrl) -> str:
    """The address that git goes to. Raises GitRefusedError for those of the link itself."""
    try:
        found = socket.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise GitAwayError(f"{url.host} is not found: {error.strerror or error}") from None
    addresses = [str(each[4][0]) for each in found]
    for address in addresses:
        if is_of_link(address):
            raise GitRefusedError(leads_to_link(url.host, address))
    return addresses[0]
