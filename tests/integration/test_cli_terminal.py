"""What somebody sees at a terminal who stays with a job."""

import os
import pty
import re
import subprocess
import sys
import termios
from collections.abc import Iterator
from dataclasses import replace

import pytest

from muster.domain.ids import JobId
from muster.domain.jobs.lifecycle import JobPhase, State
from tests.integration.canned_coordinator import Canned, Pause, serving
from tests.integration.command_line import Muster
from tests.unit.cli import values
from tests.unit.cli.values import attempt, execution, line

NEW = JobId("new1")
SUMMARY = "1 of 1 running, 0 succeeded"
RUNNING = replace(
    values.job(JobPhase.RUNNING, attempt(execution(0, State.RUNNING), released=1), summary=SUMMARY, started=1), id=NEW
)
ENDED = replace(
    values.job(JobPhase.SUCCEEDED, attempt(execution(0, State.SUCCEEDED), released=1), started=1, ended=3), id=NEW
)


@pytest.fixture
def muster() -> Iterator[Muster]:
    canned = Canned()
    with serving(canned) as address:
        yield Muster(canned, address)


def shown(terminal: int, pattern: bytes, seen: bytes = b"") -> bytes:
    """What was shown up to there."""
    while not re.search(pattern, seen, re.DOTALL):
        try:
            seen += os.read(terminal, 4096)
        except OSError:
            raise AssertionError(f"the program ended: {seen!r}") from None
    return seen


def at_terminal(muster: Muster, columns: int, *words: str) -> tuple[int, "subprocess.Popen[bytes]"]:
    """The program at a terminal, and the other end of that."""
    mine, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (25, columns))
    program = subprocess.Popen(
        [sys.executable, "-c", "from muster.cli.main import main; main()", *words],
        env={**os.environ, **muster.environment, "COLUMNS": str(columns)},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    return mine, program


@pytest.mark.parametrize("columns", [80, 120])
def test_a_silent_job_is_seen_to_run_in_the_last_line(muster: Muster, columns: int) -> None:
    muster.canned.watches = [[RUNNING, Pause.UNTIL_STOP, ENDED]]
    muster.canned.logs = [[line(b"hello")]]
    mine, program = at_terminal(muster, columns, "run", "--", "true")
    with program:
        seen = shown(mine, rb"hello.*1 of 1 running")
        muster.canned.stop_ordered.set()
        seen = shown(mine, rb"after 2.0 s", seen)
    os.close(mine)

    text = seen.decode()
    assert "true (new1) is submitted" in text.splitlines()[0]
    status = re.findall(r"\r\x1b\[2K\x1b\[2m([^\x1b]*)\x1b", text)
    assert all(each.startswith("ring (new1) running for ") and len(each) < columns for each in status)
    assert columns < 100 or status[0].endswith("1 of 1 running, 0 succeeded · Ctrl-C stops it")
    assert re.search(r"\r\x1b\[2K(\x1b\[\d+m)?\[0\](\x1b\[0m)? hello", text), repr(text)


@pytest.mark.parametrize("words", [("run", "--", "true"), ("logs", "-f", "new1")])
def test_a_progress_bar_is_seen_while_it_moves(muster: Muster, words: tuple[str, ...]) -> None:
    muster.canned.jobs = [RUNNING]
    muster.canned.watches = [[RUNNING, Pause.UNTIL_STOP, ENDED]]
    bars = (line(b" 10%\r 55%", partial=True), line(b"\r\x1b]0;title\x07 80%", rank=1, partial=True))
    muster.canned.logs = [[*bars, Pause.UNTIL_STOP, line(b"\r100%")]]
    mine, program = at_terminal(muster, 80, *words)
    with program:
        seen = shown(mine, rb"\[0\]  55%.*80%.*1 of 1 running")
        muster.canned.stop_ordered.set()
        seen = shown(mine, rb"100%\r\n", seen)
        program.terminate()
    os.close(mine)

    assert b" 10%" not in seen  # a state that was overwritten
    assert b"\x1b]0" not in seen
    assert re.search(rb"(\r\x1b\[2K\x1b\[A){2}\r\x1b\[2K(\x1b\[\d+m)?\[0\](\x1b\[0m)? 100%", seen), repr(seen)


def test_nothing_is_drawn_where_nobody_looks(muster: Muster) -> None:
    muster.canned.watches = [[RUNNING, ENDED]]
    muster.canned.logs = [[line(b"hello")]]

    done = muster("run", "--", "true")

    assert (done.stdout, "\x1b" in done.stderr, "is submitted" in done.stderr) == ("[0] hello\n", False, False)
