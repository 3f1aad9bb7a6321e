"""Git LFS: the small files that stand for large ones, and what a server is asked and answers about them."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from muster.domain.data.code import GitUrl
from muster.transfer.git.faults import GitAwayError, GitRefusedError

LARGEST_POINTER = 1024
"""Bytes of the largest file that may stand for a large one."""
LARGE_FILES_ASKED = 100
"""Large files in one question to their server."""
HEADERS_OF_LARGE_FILE = 20
"""Headers that a server may want to see with the question for one large file."""
LFS_FORM = "application/vnd.git-lfs+json"
"""The form of questions and answers."""

_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\r?\noid sha256:([0-9a-f]{64})\r?\nsize ([0-9]{1,15})\s*"
)
_WRITTEN = re.compile(r"[\x21-\x7e]+")
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection"})
_PORT = 443


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeFile:
    """A large file that a small one stands for."""

    digest: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeFilePlace:
    """Where a server has a large file."""

    url: str = field(repr=False)
    """A URL whose query may open the file to whoever has it."""
    headers: Mapping[str, str] = field(repr=False)

    @property
    def brings_authorization(self) -> bool:
        """Whether the server has said itself what is to be shown there."""
        return any(name.lower() == "authorization" for name in self.headers)


def read_pointer(content: bytes) -> LargeFile | None:
    """The large file that these bytes stand for; None: they are a file like any other."""
    found = _POINTER.fullmatch(content) if len(content) <= LARGEST_POINTER else None
    return None if found is None else LargeFile(digest=found[1].decode(), size=int(found[2]))


def batch_url(repository: str) -> str:
    """The URL that is asked about large files of a repository, as `git-lfs` finds it."""
    plain = repository.rstrip("/")
    return f"{plain}{'' if plain.endswith('.git') else '.git'}/info/lfs/objects/batch"


def batch_question(files: Iterable[LargeFile]) -> bytes:
    """The question where these files are."""
    objects = [{"oid": each.digest, "size": each.size} for each in files]
    said = {"operation": "download", "transfers": ["basic"], "hash_algo": "sha256", "objects": objects}
    return json.dumps(said).encode()


def batch_places(answer: bytes, files: Sequence[LargeFile]) -> Mapping[str, LargeFilePlace]:
    """Where each of these files is, by its SHA-256. Raises GitRefusedError or GitAwayError."""
    try:
        said = json.loads(answer)
        by_digest = {each["oid"]: each for each in said["objects"]}
        return {each.digest: _place(each, by_digest.get(each.digest, {})) for each in files}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise GitRefusedError("what answers there does not know Git LFS") from None


def read_place(url: str) -> GitUrl | None:
    """The server of a large file and its path there; None for what is no address with https://."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORT
    except ValueError:
        return None
    if parts.scheme != "https" or not parts.hostname or "@" in parts.netloc or _WRITTEN.fullmatch(url) is None:
        return None
    return GitUrl(scheme="https", host=parts.hostname, port=port, path=parts.path or "/")


def status_fault(status: int, is_shown: bool) -> GitRefusedError | GitAwayError | None:
    """What a status of a server means; `is_shown`: whether it was shown a token. None: here it comes."""
    if status == 200:  # noqa: PLR2004 - the one status that has an answer
        return None
    if status in {401, 403}:
        said = "it refuses what it was shown" if is_shown else "it lets nobody in without credentials"
        return GitRefusedError(f"{said} (HTTP {status})")
    if status in {404, 410}:
        return GitRefusedError(f"there is nothing (HTTP {status})")
    if status in {301, 302, 303, 307, 308}:
        return GitRefusedError(f"it leads on to another address, to which nobody goes (HTTP {status})")
    if status in {408, 425, 429} or status >= 500:  # noqa: PLR2004 - the server's own faults
        return GitAwayError(f"it has no answer now (HTTP {status})")
    return GitRefusedError(f"it answers with HTTP {status}")


def _place(file: LargeFile, told: Mapping[str, object]) -> LargeFilePlace:
    error, actions = told.get("error"), told.get("actions")
    if isinstance(error, dict):
        code = error.get("code")
        raise GitRefusedError(f"its server does not give the large file {file.digest[:12]} (code {int(code or 0)})")
    if not isinstance(actions, dict):
        raise GitRefusedError(f"its server does not have the large file {file.digest[:12]}")
    download = actions["download"]
    url, headers = download["href"], download.get("header") or {}
    if read_place(url) is None:
        raise GitRefusedError(f"its server has the large file {file.digest[:12]} at what is no address with https://")
    if len(headers) > HEADERS_OF_LARGE_FILE or not all(isinstance(value, str) for value in headers.values()):
        raise GitRefusedError(f"its server wants too much to be shown for the large file {file.digest[:12]}")
    kept = {name: value for name, value in headers.items() if name.lower() not in _OURS}
    return LargeFilePlace(url=url, headers=kept)
