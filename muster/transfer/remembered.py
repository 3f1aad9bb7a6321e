"""What files of a folder held when they were read last, so that a folder that has not changed is not read again."""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, Self

from muster.domain.data.tree import ContentEntry, ContentKind, ContentTree

UNSETTLED_NS = 2_000_000_000
"""A file that was changed so many ns before it was read is read again: it may change within one tick of its clock."""

_FORM = "muster-folder-2"
_KINDS = {each.value: each for each in ContentKind}


class FileStamp(NamedTuple):
    """What of a file or link changes whenever its content or its rights do."""

    size: int
    modified_ns: int
    changed_ns: int
    """The time that nobody can set."""
    inode: int

    @classmethod
    def of(cls, status: os.stat_result) -> Self:
        """The stamp of a file."""
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    def is_settled(self, now_ns: int) -> bool:
        """Whether a change after this moment would show."""
        return max(self.modified_ns, self.changed_ns) < now_ns - UNSETTLED_NS


class RememberedFile(NamedTuple):
    """A file or link as it was read."""

    size: int
    modified_ns: int
    changed_ns: int
    inode: int
    kind: ContentKind
    content: str
    """SHA-256 of a file, or where a link leads."""

    @property
    def stamp(self) -> FileStamp:
        """What of it changes whenever its content or its rights do."""
        return FileStamp(*self[:4])


_KIND = RememberedFile._fields.index("kind")


class TreeSummary(NamedTuple):
    """What there is to say of a content tree without its entries."""

    digest: str
    size: int
    """Bytes of its canonical form."""
    files: int
    bytes: int
    """Bytes of all files."""

    @classmethod
    def of(cls, tree: ContentTree) -> Self:
        """The summary of a tree."""
        form = tree.form
        return cls(sha256(form).hexdigest(), len(form), len(tree.entries), tree.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedFolder:
    """A folder as it was read last."""

    files: Mapping[str, RememberedFile] = field(default_factory=dict)
    """Files by path, without those that had just been changed."""
    rules: Mapping[str, str] = field(default_factory=dict)
    """Names of all ignore rules that counted in each directory when its files were found."""
    tree: TreeSummary | None = None
    """The tree of exactly these files; None: there were others."""


NOTHING_REMEMBERED = RememberedFolder()
"""A folder that was never read."""


def entries_of(files: Mapping[str, RememberedFile]) -> Iterable[ContentEntry]:
    """The entries of a content tree with these files."""
    for path, each in files.items():
        size = 0 if each.kind is ContentKind.LINK else each.size
        yield ContentEntry(path=path, kind=each.kind, size=size, content=each.content)


def load_remembered(file: Path) -> RememberedFolder:
    """What was remembered; nothing where the file is missing, not ours, or damaged."""
    try:
        head, _, body = file.read_bytes().partition(b"\n")
        if head.decode() != f"{_FORM} {sha256(body).hexdigest()}":
            return NOTHING_REMEMBERED
        said: dict[str, Any] = json.loads(body)
    except (OSError, ValueError):
        return NOTHING_REMEMBERED
    paths, *columns = said["files"]
    columns[_KIND] = map(_KINDS.__getitem__, columns[_KIND])
    files = dict(zip(paths, map(RememberedFile._make, zip(*columns, strict=True)), strict=True))
    return RememberedFolder(files=files, rules=said["rules"], tree=TreeSummary(*said["tree"]) if said["tree"] else None)


def save_remembered(file: Path, found: RememberedFolder) -> None:
    """Remember this; what cannot be written is read again next time."""
    columns = [*zip(*found.files.values(), strict=True)] or [()] * len(RememberedFile._fields)
    body = json.dumps(
        {"files": [[*found.files], *columns], "rules": found.rules, "tree": found.tree}, separators=(",", ":")
    ).encode()
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh.write_bytes(b"%s %s\n%s" % (_FORM.encode(), sha256(body).hexdigest().encode(), body))
        fresh.replace(file)


def remembered_file(environ: Mapping[str, str], folder: Path) -> Path:
    """The file in this user's cache in which the files of a folder are remembered."""
    cache = Path(environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return cache / "muster" / "folders" / sha256(os.fsencode(folder.resolve())).hexdigest()[:32]
