"""Which images an agent has pulled itself, and when it last used each; on the disk of the node."""

import json
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from agent.executions.whole_file import write_whole
from muster.domain.jobs.image import tag_of, without_tag

PULLED_FILE = "images.json"
"""The name of the file in the agent's state directory."""

IMAGE_UNUSED = 3600.0
"""Seconds for which nothing must have begun with an image before it goes."""

_PRIVATE = 0o600
_SHA256, _DIGITS = "sha256:", 12


@dataclass(frozen=True, slots=True, kw_only=True)
class PulledImage:
    """An image that was pulled."""

    id: str
    """What the engine calls it."""
    names: tuple[str, ...]
    """The names that it was given by the agent."""
    used_at: float
    """When an execution last began with it, or was seen to use it, in seconds since 1970."""
    bytes: int = 0
    """How much it is by the engine's word; 0: that is not known."""


def may_go(images: Sequence[PulledImage], in_use: Collection[str], now: float) -> Sequence[PulledImage]:
    """The images that may go, the longest unused first."""
    unused = (each for each in images if each.id not in in_use and now - each.used_at >= IMAGE_UNUSED)
    return sorted(unused, key=lambda each: (each.used_at, each.id))


def is_meant(image: PulledImage, wanted: str) -> bool:
    """Whether an image is meant by one of its names, its id, or the first twelve digits of that at the least."""
    digits = wanted.removeprefix(_SHA256)
    if len(digits) >= _DIGITS and image.id.removeprefix(_SHA256).startswith(digits):
        return True
    return _spelt_out(wanted) in map(_spelt_out, image.names)


def _spelt_out(name: str) -> str:
    """A name with its registry, and its digest or its tag."""
    _, _, digest = name.partition("@")
    return f"{without_tag(name)}@{digest}" if digest else f"{without_tag(name)}:{tag_of(name)}"


class PulledImages:
    """The note of what was pulled; what cannot be written or read is as if it had not been pulled, and stays."""

    def __init__(self, path: Path | None, clock: Callable[[], float] = time.time) -> None:
        """`path`: the file; None: it is known until the agent ends."""
        self.revision = 0
        """Counts up whenever there is something to tell of them."""
        self._path = path
        self._clock = clock
        self._known: dict[str, PulledImage] | None = None

    @property
    def now(self) -> float:
        """The time by which uses are noted."""
        return self._clock()

    def all(self) -> Sequence[PulledImage]:
        """What was pulled and is not known to be gone."""
        return tuple(self._images().values())

    def id_of(self, name: str) -> str | None:
        """The image that was pulled under a name with a digest, by what the engine calls it."""
        spelt = _spelt_out(name)
        for each in self.all():
            if spelt in map(_spelt_out, each.names):
                return each.id
        return None

    def digests_of(self, image: str) -> Sequence[str]:
        """The names with digests under which an image was pulled."""
        known = self._images().get(image)
        return () if known is None else tuple(name for name in known.names if "@" in name)

    def note(self, image: str, *names: str, size: int = 0) -> None:
        """Note that an image of so many bytes was pulled, and has these names."""
        before = self._images().get(image)
        known = () if before is None else before.names
        all_names = (*known, *(name for name in names if name not in known))
        self._images()[image] = PulledImage(
            id=image, names=all_names, used_at=self._clock(), bytes=size or (0 if before is None else before.bytes)
        )
        self._write()

    def note_use(self, *used: str) -> None:
        """Note that images are used now, as far as they were pulled."""
        images, now = self._images(), self._clock()
        pulled = [image for image in used if image in images]
        for image in pulled:
            images[image] = replace(images[image], used_at=now)
        if pulled:
            self._write()

    def forget(self, image: str) -> None:
        """Note that an image is gone, or is somebody else's by now."""
        if self._images().pop(image, None) is not None:
            self._write()

    def _images(self) -> dict[str, PulledImage]:
        if self._known is None:
            self._known = {} if self._path is None else _read(self._path)
        return self._known

    def _write(self) -> None:
        self.revision += 1
        if self._path is not None:
            said = [
                {"id": each.id, "names": each.names, "used_at": each.used_at, "bytes": each.bytes}
                for each in self.all()
            ]
            with suppress(OSError):  # a full disk is no reason not to go on
                write_whole(self._path, json.dumps(said).encode(), _PRIVATE)


def _read(path: Path) -> dict[str, PulledImage]:
    try:
        said = json.loads(path.read_bytes())
        return {
            str(each["id"]): PulledImage(
                id=str(each["id"]),
                names=tuple(map(str, each["names"])),
                used_at=float(each["used_at"]),
                bytes=int(each.get("bytes", 0)),
            )
            for each in said
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
