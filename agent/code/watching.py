"""Whether anything was changed below a directory since it was looked at: the kernel tells, for each directory once.

Nothing is told of what comes by another name of a file, by another machine, or below the file system. Every call may
block; whoever calls sees to it that nobody else does at the same time.
"""

import ctypes
import os
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from weakref import finalize

MOST_DIRECTORIES_WATCHED = 5_000
"""Directories of one tree that are watched; a tree with more is looked through whenever it is used."""

_MODIFY, _ATTRIB, _CLOSE_WRITE = 0x2, 0x4, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_OVERFLOW, _IGNORED, _IS_DIRECTORY = 0x4000, 0x8000, 0x4000_0000
_ONLY_DIRECTORIES, _NO_LINKS = 0x0100_0000, 0x0200_0000
_CHANGES = _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_EVENT = struct.Struct("iIII")
_EVENTS_READ = 64 * 1024

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(slots=True)
class _Watched:
    """One directory with all below it."""

    identity: tuple[int, int]
    """Device and inode: another directory in its place is another one."""
    watches: list[int] = field(default_factory=list)
    """The first one is that of the directory itself."""


class WatchedDirectories:
    """Directories that are watched with all that is below them."""

    def __init__(self, most: int = MOST_DIRECTORIES_WATCHED) -> None:
        """`most`: directories of one tree. Raises OSError where the kernel watches nothing more for this user."""
        self._events = _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._most = most
        finalize(self, os.close, self._events)
        self._watched: dict[str, _Watched] = {}
        self._names: dict[int, str] = {}
        """The directory that each watch is for."""

    def begin(self, name: str, place: Path) -> None:
        """Watch a directory from now on under a name. Raises OSError where that cannot be done, and watches nothing."""
        self.end(name)
        found = place.stat()
        watched = self._watched[name] = _Watched((found.st_dev, found.st_ino))
        try:
            below = [os.fsencode(place)]
            while below:
                within = below.pop()
                self._watch(name, within, watched.watches)  # before the look: what comes after that is told
                with os.scandir(within) as there:
                    below += [each.path for each in there if each.is_dir(follow_symlinks=False)]
        except OSError:
            self.end(name)
            raise

    def _watch(self, name: str, within: bytes, watches: list[int]) -> None:
        if len(watches) >= self._most:
            raise OSError(f"{os.fsdecode(within)} is one of more than {self._most} directories")
        flags = _CHANGES | _ONLY_DIRECTORIES | _NO_LINKS
        watches.append(_checked(_libc.inotify_add_watch(self._events, within, flags)))
        self._names[watches[-1]] = name

    def end(self, name: str) -> None:
        """Watch a directory no more. Harmless when repeated."""
        watched = self._watched.pop(name, None)
        for watch in () if watched is None else watched.watches:
            if self._names.pop(watch, None) is not None:
                _libc.inotify_rm_watch(self._events, watch)

    def is_unchanged(self, name: str, place: Path) -> bool:
        """Whether a directory is watched under this name, is still in its place, and nothing was changed in it."""
        self._hear()
        watched = self._watched.get(name)
        if watched is None:
            return False
        with suppress(OSError):
            found = place.stat(follow_symlinks=False)
            if (found.st_dev, found.st_ino) == watched.identity:
                return True
        self.end(name)
        return False

    def _hear(self) -> None:
        """Take in what the kernel has told: what was changed is not watched any more."""
        with suppress(BlockingIOError):
            while told := os.read(self._events, _EVENTS_READ):
                at = 0
                while at < len(told):
                    watch, mask, _, length = _EVENT.unpack_from(told, at)
                    at += _EVENT.size + length
                    self._take(watch, mask, named=length > 0)

    def _take(self, watch: int, mask: int, *, named: bool) -> None:
        if mask & _OVERFLOW:  # more was changed than the kernel remembers
            for each in [*self._watched]:
                self.end(each)
            return
        name = self._names.get(watch)
        if name is None:
            return
        at_top = watch == self._watched[name].watches[0] and not named
        if at_top and mask & ~_IS_DIRECTORY == _ATTRIB:
            return  # the time of its last use was set
        if mask & _IGNORED:
            del self._names[watch]
        self.end(name)


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
