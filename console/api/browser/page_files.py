"""Files of the pages as they were built, read once and packed once for all who fetch them."""

import gzip
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

INDEX = "index.html"
"""The page into which all others are loaded."""
PAGES_FOLDER = Path(__file__).parents[2] / "pages"
"""Where `make web` puts what it builds."""
_ASSETS = "assets"
"""The folder of files whose names follow from what is in them."""
_TYPES: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
_PACKED_ALREADY = frozenset({".woff2"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """A file, and how it is sent."""

    media_type: str
    content: bytes
    packed: bytes | None
    """The same under gzip; None: that would make it no smaller."""
    tag: str
    """The ETag: another one for each content."""
    lasts: bool
    """Whether it never changes, as its name would change with it."""


def page_files(folder: Path = PAGES_FOLDER) -> Mapping[str, PageFile]:
    """All files, by their paths below `/`."""
    return dict(_read(folder))


def _read(folder: Path) -> Iterator[tuple[str, PageFile]]:
    for file in sorted(folder.rglob("*")):
        if file.suffix in _TYPES and file.is_file():
            path, content = file.relative_to(folder), file.read_bytes()
            yield (
                path.as_posix(),
                PageFile(
                    media_type=_TYPES[file.suffix],
                    content=content,
                    packed=None if file.suffix in _PACKED_ALREADY else gzip.compress(content, mtime=0),
                    tag=f'"{hashlib.sha256(content).hexdigest()[:32]}"',
                    lasts=path.parts[0] == _ASSETS,
                ),
            )
