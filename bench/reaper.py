"""Runs a program and leaves nothing of it behind: `python -m bench.reaper COMMAND...`.

What the program and its children leave to themselves, as daemons do, is adopted here, waited for, and ended with it.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER."""
GRACE = 3.0
"""Seconds between SIGTERM and SIGKILL for what was left behind."""


def keep(command: Sequence[str], **more: str) -> int:
    """The exit code of the program, once nothing of it is left; `more` is for its environment."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1)
    program = subprocess.Popen(command, env={**os.environ, **more})
    # Ctrl-C reaches the program as well, which clears up and ends; whoever means us alone means the program.
    signal.signal(signal.SIGINT, lambda *_: None)
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, lambda *_: program.send_signal(signal.SIGINT))
    code = None
    while code is None:
        pid, status = os.waitpid(-1, 0)
        if pid == program.pid:
            code = program.returncode = os.waitstatus_to_exitcode(status)
    left = _end_descendants()
    if left:
        print(f"ended what was left: {', '.join(sorted(set(left)))}", file=sys.stderr)
    return code if code >= 0 else 128 - code


def _end_descendants() -> list[str]:
    """End what is still there; gives its names."""
    left = [name for pid in descendants(os.getpid()) if (name := _name(pid))]
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in list(descendants(os.getpid())):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        deadline = time.monotonic() + GRACE
        while time.monotonic() < deadline and _some_left():
            time.sleep(0.05)
    return left


def _some_left() -> bool:
    """Whether there are children, after those that have ended were waited for."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def descendants(pid: int) -> Iterator[int]:
    """Children, their children, and so on."""
    with suppress(OSError):
        for thread in list(Path(f"/proc/{pid}/task").iterdir()):
            for child in (thread / "children").read_text().split():
                yield int(child)
                yield from descendants(int(child))


def _name(pid: int) -> str | None:
    """None for one that has ended and is only not waited for."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return None if state == "Z" else Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None


if __name__ == "__main__":
    sys.exit(keep(sys.argv[1:]))
