"""Places of files as people write them: a path on this machine, or `JOB:[RANK:]PATH`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from muster.domain.errors import InvalidJobError

_WITH_RANK = re.compile(r"([0-9]{1,9}):(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPlace:
    """A path on this machine."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePlace:
    """A path in an execution."""

    job: str
    path: str
    """Relative to the working directory of the job's program, unless it is absolute; empty: that directory."""
    rank: int | None = None

    @property
    def text(self) -> str:
        """The place as it is shown."""
        return f"{self.job}:{self.path}" if self.rank is None else f"{self.job}:{self.rank}:{self.path}"


Place = LocalPlace | RemotePlace


def place_of(text: str) -> Place:
    """The place that a text means; a colon behind a slash belongs to a local path, as in `./a:b`.

    Raises InvalidJobError for an empty text, and for one that begins with a colon.
    """
    job, colon, path = text.partition(":")
    if not colon or "/" in job:
        if not text:
            raise InvalidJobError("an empty word is no place of files; write `.` for this directory")
        return LocalPlace(path=text)
    if not job:
        raise InvalidJobError(f"{text!r} names no job; write JOB:PATH, or ./{text} for a file of this machine")
    if "\0" in path:
        raise InvalidJobError("no path has a zero byte in it")
    found = _WITH_RANK.fullmatch(path)
    if found is None:
        return RemotePlace(job=job, path=path)
    return RemotePlace(job=job, path=found[2], rank=int(found[1]))


def name_at_target(place: Place) -> str:
    """The name that a source gets in a directory; empty for `.` and the like: what is in it goes there itself."""
    name = place.path.rstrip("/").rpartition("/")[2]
    return "" if name in {".", ".."} else name


def execution_meant(sources: Sequence[Place], target: Place) -> tuple[str, int | None]:
    """The job whose files are copied, and its rank; raises InvalidJobError where not exactly one side is remote."""
    remote = {(each.job, each.rank) for each in (*sources, target) if isinstance(each, RemotePlace)}
    if not remote:
        raise InvalidJobError("both sides are on this machine; write JOB:PATH for files of an execution")
    if len({isinstance(each, RemotePlace) for each in sources}) > 1 or (
        isinstance(target, RemotePlace) and isinstance(sources[0], RemotePlace)
    ):
        raise InvalidJobError("files go between this machine and executions; copy them to this machine first")
    if len(remote) > 1:
        raise InvalidJobError("the sources are of several executions; copy from one after the other")
    return next(iter(remote))
