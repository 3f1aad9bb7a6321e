"""A program that starts workers as torchrun does, and worse: in sessions of their own, as daemons, deaf to SIGTERM.

The arguments name what it starts; it prints the number of each process, then `ready`, and waits.
"""

import os
import signal
import sys
import time

BOMB = 200
"""Processes that a bomb has at most."""

LONG = 1000.0


def main() -> None:
    """Start what the arguments name, and wait."""
    for kind in sys.argv[1:]:
        if os.fork() == 0:
            KINDS[kind]()
            say(str(os.getpid()))
            while True:
                time.sleep(LONG)
    say("ready")
    while True:
        time.sleep(LONG)


def say(text: str) -> None:
    """Print a line by one call, as many do so at once."""
    os.write(1, f"{text}\n".encode())


def worker() -> None:
    """Be a worker of torchrun: it leads a session."""
    os.setsid()


def deaf() -> None:
    """Be a worker that does not end when it is asked to."""
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def daemon() -> None:
    """Be a daemon: nobody's child, and in nobody's session."""
    deaf()
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)


def nameless() -> None:
    """Be a daemon whose environment is empty."""
    daemon()
    os.write(1, f"{os.getpid()}\n".encode())
    os.execve("/bin/sleep", ["sleep", str(LONG)], {})


def bomb() -> None:
    """Have children that have children, each of which forks as long as the bomb is not full."""
    deaf()
    reader, writer = os.pipe()
    os.write(writer, b"." * BOMB)
    os.set_blocking(reader, False)
    while True:
        try:
            os.read(reader, 1)
        except BlockingIOError:
            return
        if os.fork() == 0:
            os.setsid()


KINDS = {"worker": worker, "deaf": deaf, "daemon": daemon, "nameless": nameless, "bomb": bomb}

if __name__ == "__main__":
    main()
