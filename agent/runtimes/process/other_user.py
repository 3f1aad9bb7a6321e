"""Programs that run as another user than the agent, with none of its rights.

Used by supervisors: needs no event loop, and nothing but the standard library.
"""

import ctypes
import errno
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

_LAST_CAPABILITY = 63
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _CLEAR_ALL = 24, 38, 47, 4
_CAPABILITIES_VERSION = 0x20080522
_LONGEST = 4096

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class UserStart:
    """What is to be started, and as whom."""

    path: str
    command: tuple[str, ...]
    env: Mapping[str, str]
    workdir: str
    uid: int
    gid: int


def rehearse(start: UserStart) -> None:
    """Raise OSError where the user could not start the program, so that it is not found out when others run."""
    _in_a_fork(lambda: _look(start))


def spawn(start: UserStart, outputs: Sequence[int], ignored: Sequence[signal.Signals]) -> int:
    """Start the program in a session of its own; its pid. Raises OSError.

    It writes to `outputs` from descriptor 1 on; signals that this process ignores it finds as usual.
    """

    def run() -> NoReturn:
        os.setsid()
        for each in ignored:
            signal.signal(each, signal.SIG_DFL)
        for number, descriptor in enumerate(outputs, start=1):
            os.dup2(descriptor, number)
        _become(start)
        os.chdir(start.workdir)
        os.execve(start.path, start.command, start.env)  # noqa: S606 - what the job says

    return _in_a_fork(run, stays=True)


def _in_a_fork(work: Callable[[], None], *, stays: bool = False) -> int:
    """Have a fork do something; its pid if it stays. What it fails with is raised here."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except OSError as problem:
            os.write(writer, f"{problem.errno or errno.EIO} {problem.strerror}".encode()[:_LONGEST])
        finally:
            os._exit(127)
    os.close(writer)
    said = os.read(reader, _LONGEST)  # nothing as soon as the program is there
    os.close(reader)
    if said or not stays:
        os.waitpid(pid, 0)
    if said:
        number, _, reason = said.decode(errors="replace").partition(" ")
        raise OSError(int(number), reason)
    return pid


def _look(start: UserStart) -> None:
    _become(start)
    who = f"user {start.uid}:{start.gid}"
    try:
        os.chdir(start.workdir)
    except OSError as problem:
        raise OSError(errno.EPERM, f"{who} may not enter {start.workdir} ({problem.strerror})") from problem
    if not os.access(start.path, os.X_OK):
        raise OSError(errno.EACCES, f"{who} may not run {start.path}")


def _become(start: UserStart) -> None:
    """Be that user and nothing else, for good."""
    _control(_PR_SET_NO_NEW_PRIVS, 1)
    for number in range(_LAST_CAPABILITY + 1):
        _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)  # where that is not allowed, no_new_privs does
    _control(_PR_CAP_AMBIENT, _CLEAR_ALL)
    os.setgroups([])
    os.setresgid(start.gid, start.gid, start.gid)
    os.setresuid(start.uid, start.uid, start.uid)
    _drop_capabilities()


def _drop_capabilities() -> None:
    """Drop capabilities that a process keeps if it was not root before either."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
    none = (ctypes.c_uint32 * 6)()
    if _libc.capset(header, none) != 0:
        raise OSError(ctypes.get_errno(), "capabilities cannot be dropped")


def _control(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "rights cannot be dropped")
