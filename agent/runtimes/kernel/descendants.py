"""What descends from a supervisor's program, whatever sessions and groups it makes.

Used by supervisors: needs no event loop, and nothing but the standard library.
"""

import ctypes
import os
import signal
from contextlib import suppress

_PR_SET_CHILD_SUBREAPER = 36
_ALL = 0x40000000
"""Children of every kind (`__WALL`)."""
_MANY = 4096

CALL_SIGNAL = signal.SIGURG
"""What an agent sends to a supervisor that is to look for a call. One that knows of no calls is not harmed by it."""

_libc = ctypes.CDLL(None, use_errno=True)


class Descendants:
    """The children of this process, whose orphaned grandchildren become its children, too.

    So where it has no child left, nothing is left of any that it had.
    """

    def __init__(self) -> None:
        if _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "the kernel does not give this process its orphans")
        self.news, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        """Can be read when a child may have ended, or somebody calls."""
        for number in (signal.SIGCHLD, CALL_SIGNAL):
            signal.signal(number, lambda _number, _frame: None)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self.none = False
        """Whether there was none at the last look."""
        self.called = False
        """Whether somebody called before the last look, and after the one before."""

    def ended(self) -> dict[int, int]:
        """Exit codes of those that have ended since the last look, by pid; minus the signal for what a signal ended."""
        self.called = False
        with suppress(BlockingIOError):
            self.called = CALL_SIGNAL in os.read(self.news, _MANY)
        codes: dict[int, int] = {}
        self.none = False
        try:
            while found := os.waitpid(-1, os.WNOHANG | _ALL):
                pid, status = found
                if not pid:
                    break
                codes[pid] = os.waitstatus_to_exitcode(status)
        except ChildProcessError:
            self.none = True
        return codes
