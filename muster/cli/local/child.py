"""The program that becomes a coordinator or an agent of `muster up`, and ends when `muster up` does, however that ends.

Arguments: the process id of `muster up`, then the command to become. The kernel sends SIGTERM to it when its parent has
gone, also after SIGKILL, so it stops in order and nothing of it stays.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Become the command."""
    parent, *command = sys.argv[1:]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != int(parent):
        sys.exit("`muster up` has ended already")
    os.execv(command[0], command)  # noqa: S606 - our own program, and no shell


if __name__ == "__main__":
    main()
