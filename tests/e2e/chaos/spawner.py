"""A program of the kind of torchrun: it starts workers in sessions of their own, which do not end because it does.

Jobs get the text of this module as `python3 -c`; the workers are the same text with their number behind it. So it
needs nothing but the standard library, and `user_code` has the form of what it writes into the stamps.
"""

import os
import signal
import subprocess
import sys
import time

BEAT_EVERY = 0.1
"""Seconds between two stamps of a worker."""

BEATS_FOR = 200.0
"""Seconds after which a worker that nobody has ended gives up: longer than the longest job, and still bounded."""

TOLD_WITHIN = 0.2
"""Seconds in which the spawner hears of a stop that its workers have heard of."""

ENDED_WITHIN = 0.5
"""Seconds that workers have for their end before they are killed."""


def stamp(what: str, number: int) -> None:
    """Add a line to the file that all workers of the job share."""
    at = time.clock_gettime(time.CLOCK_BOOTTIME)
    line = f"{os.environ['MUSTER_ATTEMPT']} {os.environ['MUSTER_RANK']} {what} {number} {at:.2f}\n"
    file = os.open(os.environ["CHAOS_STAMPS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(file, line.encode())
    os.close(file)


def work(number: int) -> None:
    """Live on and say so, whatever becomes of the spawner."""
    until = time.monotonic() + BEATS_FOR
    while time.monotonic() < until:
        stamp("beat", number)
        time.sleep(BEAT_EVERY)


def spawn() -> int:
    """Print numbered lines while the workers live; the exit code."""
    told: list[int] = []
    if os.environ["CHAOS_DEAF"] == "0":
        signal.signal(signal.SIGTERM, lambda number, _frame: told.append(number))
    stamp("start", 0)
    workers = [
        subprocess.Popen([*sys.orig_argv, str(number)], start_new_session=True)
        for number in range(int(os.environ["CHAOS_WORKERS"]))
    ]
    printed, lost = 0, False
    while printed < int(os.environ["CHAOS_STEPS"]) and not told and not lost:
        for _ in range(int(os.environ["CHAOS_BURST"])):
            printed += 1
            os.write(1, f"out {printed}\n".encode())
            os.write(2, f"err {printed}\n".encode())
        stamp("line", printed)
        time.sleep(float(os.environ["CHAOS_PAUSE"]))
        lost = any(worker.poll() is not None for worker in workers)
    if lost and not told:
        time.sleep(TOLD_WITHIN)
    end(workers)
    if told:
        stamp("stopped", printed)
        return 128 + signal.SIGTERM
    code = 1 if lost else int(os.environ["CHAOS_BAD_CODE"]) if is_bad() else 0
    stamp("end", printed)
    stamp("code", code)
    return code


def is_bad() -> bool:
    """Whether this rank is to fail in this attempt."""
    here = os.environ["MUSTER_RANK"] == os.environ["CHAOS_BAD_RANK"]
    return here and int(os.environ["MUSTER_ATTEMPT"]) <= int(os.environ["CHAOS_BAD_ATTEMPTS"])


def end(workers: list[subprocess.Popen[bytes]]) -> None:
    """End the workers, as torchrun does: first by SIGTERM, then by SIGKILL."""
    for worker in workers:
        worker.terminate()
    until = time.monotonic() + ENDED_WITHIN
    for worker in workers:
        try:
            worker.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()


if __name__ == "__main__":
    if os.environ["CHAOS_DEAF"] == "1":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if len(sys.argv) > 1:
        work(int(sys.argv[1]))
    else:
        sys.exit(spawn())
