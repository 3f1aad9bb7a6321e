"""A commit of a repository, fetched into a directory of this machine, and read as a content tree."""

import shutil
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from muster.domain.data.code import GitCode, GitUrl, read_git_url
from muster.domain.data.tree import ContentEntry, ContentTree, MalformedTreeError, content_tree
from muster.domain.data.upload import CODE_LIMIT
from muster.domain.quantity import size_text
from muster.transfer.folder import CODE_FILES
from muster.transfer.git import commands, reading
from muster.transfer.git.access import GitKeys, opened
from muster.transfer.git.faults import GitAwayError, GitMissingError, GitRefusedError
from muster.transfer.git.large_files import LargeFiles
from muster.transfer.git.lfs import LARGEST_POINTER, read_pointer
from muster.transfer.git.program import GitProgram
from muster.transfer.git.servers import address_of
from muster.transfer.git.submodules import (
    DEEPEST_SUBMODULE,
    MOST_SUBMODULES,
    SubmoduleLink,
    read_gitmodules,
    submodules_of,
)

Opens = Callable[[GitUrl], GitKeys]
"""What a server is shown; nothing for one that the secret of the code is not for."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """The repository itself, or one of its submodules."""

    code: GitCode
    place: str = ""
    """The place in the tree at which it belongs; empty: the repository itself."""
    depth: int = 0

    def at(self, path: str) -> str:
        """A path of it in the tree."""
        return f"{self.place}/{path}" if self.place else path


def git_is_here() -> bool:
    """Whether this machine has the program."""
    return shutil.which("git") is not None


class GitFetch:
    """One attempt to fetch a commit, for a thread; whoever waits may stop it."""

    def __init__(self, code: GitCode, opens: Opens, directory: Path, limits: GitLimits | None = None) -> None:
        """`directory` is this attempt's alone; whoever made it removes it."""
        self._code = code
        self._opens = opens
        self._directory = directory
        self._limits = limits or GitLimits()
        self._program: GitProgram | None = None
        self._stopped = False
        self._entries: list[ContentEntry] = []
        self._files: dict[str, Path] = {}
        self._size = 0
        self._large = LargeFiles(opens, self._limits.stall)

    def stop(self) -> None:
        """Have it end soon."""
        self._stopped = True
        self._large.stop()
        if self._program is not None:
            self._program.stop()

    def run(self) -> FetchedCommit:
        """The commit. Raises GitRefusedError, GitAwayError, GitMissingError, or OSError where the disk is full."""
        if not git_is_here():
            raise GitMissingError("this node has no git: install the package `git` on it")
        whole = _Part(code=self._code)
        commit, submodules = self._fetched(whole, self._directory)
        waiting, number = deque(submodules), 0
        while waiting:
            number += 1
            if number + len(waiting) - 1 > MOST_SUBMODULES:
                raise GitRefusedError(f"it has more than {MOST_SUBMODULES} submodules, the most that are fetched")
            waiting.extend(self._submodule(waiting.popleft(), self._directory / f"submodule-{number}"))
        if not self._entries:
            said = f" in {self._code.path!r}" if self._code.path else ""
            raise GitRefusedError(f"commit {commit} has no files{said}")
        try:
            tree = content_tree(self._entries)
        except MalformedTreeError as error:
            raise GitRefusedError(f"commit {commit} is no tree of files: {error}") from None
        return FetchedCommit(commit=commit, tree=tree, files=self._files)

    def _submodule(self, part: _Part, directory: Path) -> Sequence[_Part]:
        """Have a submodule in the tree; the submodules that lie in it."""
        directory.mkdir(mode=0o700)
        with _named(f"the submodule {part.place!r} at {part.code.url}"):
            if part.depth > DEEPEST_SUBMODULE:
                raise GitRefusedError(f"it lies in {DEEPEST_SUBMODULE} others, and no more are looked into")
            return self._fetched(part, directory)[1]

    def _fetched(self, part: _Part, directory: Path) -> tuple[str, Sequence[_Part]]:
        """Have one repository in the tree: its commit, and its submodules."""
        url = read_git_url(part.code.url)
        if url is None:
            raise GitRefusedError("that is no address of a repository")
        address, given = address_of(url), self._opens(url)
        repository, home = directory / "repository", directory / "home"
        home.mkdir(mode=0o700)
        seconds, stall = self._limits.seconds, self._limits.stall
        with opened(url, given) as keys:
            settings = commands.network_settings(url, address, keys, stall)
            self._program = program = GitProgram(
                directory=directory,
                environment=dict(commands.git_environment(home, url, address, keys, stall)),
                command=lambda words, limit: commands.git_command(repository, words, settings, limit),
                secrets=given.values,
            )
            if self._stopped:
                raise GitAwayError("it was stopped")
            program.output(commands.init_words(repository), seconds)
            program.output(commands.fetch_words(part.code), seconds)
        commit = program.output(commands.commit_words(), seconds).decode().strip()
        listed = reading.list_commit(program, commit, part.code.path.strip("/"), seconds)
        self._read(program, part, commit, [each for each in listed if not each.is_submodule], directory / "contents")
        links = [each for each in listed if each.is_submodule] if self._code.submodules else []
        found = self._submodules_of(program, part, commit, links) if links else ()
        shutil.rmtree(repository, ignore_errors=True)  # one repository at a time takes up the disk
        return commit, found

    def _read(
        self, program: GitProgram, part: _Part, commit: str, listed: Sequence[reading.ListedFile], contents: Path
    ) -> None:
        """Have the files of a commit in the tree."""
        contents.mkdir(mode=0o700)
        self._size += sum(each.size for each in listed)
        self._refuse_too_much(commit, len(self._entries) + len(listed))
        read = reading.read_files(program, listed, contents, self._limits.seconds)
        if self._code.lfs:
            read |= self._large_files(part, commit, {each.object: each for each in listed if not each.is_link}, read)
        for each in listed:
            found = read[each.object]
            self._entries.append(reading.entry_of(each, part.at(each.path), found))
            if not each.is_link:
                self._files[found.digest] = found.place

    def _large_files(
        self,
        part: _Part,
        commit: str,
        listed: Mapping[str, reading.ListedFile],
        read: Mapping[str, reading.ReadFile],
    ) -> dict[str, reading.ReadFile]:
        """Have the large files that some of these files stand for, in their place."""
        small = {name: read[name] for name in listed if read[name].size <= LARGEST_POINTER}
        stand = {name: pointer for name, each in small.items() if (pointer := read_pointer(each.place.read_bytes()))}
        if not stand:
            return {}
        wanted = list({each.digest: each for each in stand.values()}.values())
        self._size += sum(each.size for each in wanted)
        self._refuse_too_much(commit, len(self._entries))
        into = read[next(iter(stand))].place.parent / "large"
        into.mkdir(mode=0o700)
        found = self._large.fetch(part.code.url, wanted, into)
        return {name: reading.ReadFile(each.digest, each.size, found[each.digest]) for name, each in stand.items()}

    def _submodules_of(
        self, program: GitProgram, part: _Part, commit: str, links: Sequence[reading.ListedFile]
    ) -> Sequence[_Part]:
        """The submodules below the wanted directory of a repository."""
        above = f"{part.code.path.strip('/')}/" if part.code.path else ""
        try:
            told = read_gitmodules(program.output(commands.submodule_words(commit), self._limits.seconds))
        except GitAwayError as error:
            raise GitRefusedError(f"its .gitmodules cannot be read ({error})") from error
        linked = [SubmoduleLink(path=above + each.path, commit=each.object) for each in links]
        return [
            _Part(
                code=GitCode(url=each.url, commit=each.commit),
                place=part.at(each.path.removeprefix(above)),
                depth=part.depth + 1,
            )
            for each in submodules_of(part.code.url, linked, told)
        ]

    def _refuse_too_much(self, commit: str, files: int) -> None:
        whole = f"commit {commit}{' with what came before it' if self._entries else ''}"
        if self._size > self._limits.size:
            raise GitRefusedError(
                f"{whole} has {size_text(self._size)}; {size_text(self._limits.size)} are the most that is taken as "
                "code: name a directory of it with `path`, and have large files as inputs"
            )
        if files > self._limits.files:
            raise GitRefusedError(
                f"{whole} has {files} files; {self._limits.files} are the most that are taken as code: "
                "name a directory of it with `path`"
            )


@contextmanager
def _named(what: str) -> Iterator[None]:
    """Have faults say of what they are."""
    try:
        yield
    except GitRefusedError as error:
        raise GitRefusedError(f"{what}: {error}") from None
    except GitAwayError as error:
        raise GitAwayError(f"{what}: {error}") from None
