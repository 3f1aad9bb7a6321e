"""The standard streams as the shell gave them: closed ones, unread input, and output that cannot be written."""

import errno
import os
import stat
import sys

_NAMES = ("stdin", "stdout", "stderr")


def open_closed_streams() -> None:
    """Open the standard streams that the shell has closed, so that no connection gets their number.

    Nothing can be read from such a stdin. Writing to such a stdout fails, and is reported like any other failed write.
    """
    for number, name in enumerate(_NAMES):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            setattr(sys, name, open(number, "r" if name == "stdin" else "w", closefd=False))  # noqa: SIM115 - stays open until the program ends


def has_unread_input() -> bool:
    """Whether a file or a pipe on stdin holds data that nobody has read; False at a terminal."""
    try:
        number = sys.stdin.fileno()
        kind = os.fstat(number)
        if stat.S_ISREG(kind.st_mode):
            return os.lseek(number, 0, os.SEEK_CUR) < kind.st_size
        return (stat.S_ISFIFO(kind.st_mode) or stat.S_ISSOCK(kind.st_mode)) and _waiting(number) > 0
    except (AttributeError, OSError, ValueError):  # closed, or replaced by something that is no file
        return False


def sentence_of(error: OSError) -> str:
    """What the operating system refused, as one sentence."""
    reason = error.strerror or str(error)
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {reason}"
    if error.errno in {errno.ENOSPC, errno.EBADF, errno.EIO, errno.EDQUOT}:
        return f"cannot write the output: {reason}"
    return reason


def drop_unwritable() -> None:
    """Write what is buffered; a stream that does not take it gets nothing more, and its rest is dropped."""
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, number)
            os.close(null)


def _waiting(number: int) -> int:
    """Bytes that can be read at once."""
    from array import array
    from fcntl import ioctl
    from termios import FIONREAD

    count = array("i", [0])
    ioctl(number, FIONREAD, count)
    return count[0]
