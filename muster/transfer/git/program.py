"""Runs git, in a thread, within limits of time and of what it may write; whoever waits can stop it."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Timer
from typing import IO, Self

from muster.transfer.git.faults import GitAwayError, GitMissingError, git_fault

LONGEST_LISTING_OF_GIT = 64 * 1024 * 1024
"""Bytes of a list of files of a commit."""
READ_OF_WORDS = 16 * 1024
"""Bytes of the end of what git says that are read."""

_NOT_FOUND = 127


@dataclass(slots=True)
class GitProgram:
    """One git after the other, for one repository."""

    directory: Path
    """Where what git says is written to."""
    environment: "dict[str, str]" = field(repr=False)
    command: Callable[[Sequence[str], float], Sequence[str]]
    """The whole command for some words, and for the seconds after which it ends by itself."""
    secrets: Sequence[str] = field(default=(), repr=False)
    _lock: Lock = field(default_factory=Lock, repr=False)
    _running: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)
    _stopped: bool = field(default=False, repr=False)

    def stop(self) -> None:
        """End what runs, and begin nothing more; for another thread."""
        with self._lock:
            self._stopped = True
            _kill(self._running)

    def output(self, words: Sequence[str], limit: float) -> bytes:
        """What git answers. Raises GitRefusedError, GitAwayError, GitMissingError or OSError."""
        with self.started(words, limit) as running:
            answer = running.read(LONGEST_LISTING_OF_GIT + 1)
            if len(answer) > LONGEST_LISTING_OF_GIT:
                raise git_fault("File too large", (), 1)
            running.done()
            return answer

    def started(self, words: Sequence[str], limit: float, asked: Iterable[str] = ()) -> "RunningGit":
        """Git as it runs, for so many seconds at most; `asked` are lines on its standard input."""
        said = self.directory / "said"
        questions = self.directory / "asked"
        questions.write_text("".join(f"{line}\n" for line in asked))
        with self._lock, said.open("wb") as errors, questions.open("rb") as lines:
            if self._stopped:
                raise GitAwayError("it was stopped")
            self._running = process = subprocess.Popen(  # noqa: S603 - no shell reads the words
                self.command(words, limit),
                stdin=lines,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=self.environment,
                start_new_session=True,
            )
        return RunningGit(process, said, self.secrets, limit)


class RunningGit:
    """One git that runs; it is ended when nobody needs it any more."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        said: Path,
        secrets: Sequence[str],
        limit: float,
    ) -> None:
        self._process = process
        self._said = said
        self._secrets = secrets
        self._late = Event()
        self._timer = Timer(limit, self._end_late)
        self._timer.daemon = True
        self._timer.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        _kill(self._process)
        self._process.wait()
        self._answers.close()

    @property
    def _answers(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def read(self, size: int) -> bytes:
        """So many bytes of its answer, or what there is."""
        return self._answers.read(size)

    def line(self) -> bytes:
        """The next line of its answer."""
        return self._answers.readline(READ_OF_WORDS)

    def done(self) -> None:
        """Wait for its end. Raises what it failed with."""
        code = self._process.wait()
        if self._late.is_set():
            raise GitAwayError("git took too long")
        if code:
            raise self._fault(code)

    def _end_late(self) -> None:
        self._late.set()
        _kill(self._process)

    def _fault(self, code: int) -> Exception:
        if code == _NOT_FOUND:
            return GitMissingError("this node has no git, or no ssh: install the packages `git` and `openssh-client`")
        with self._said.open("rb") as said:
            said.seek(max(0, os.fstat(said.fileno()).st_size - READ_OF_WORDS))
            return git_fault(said.read().decode(errors="replace"), self._secrets, code)


def _kill(process: "subprocess.Popen[bytes] | None") -> None:
    """End a git with all that it has started."""
    if process is not None and process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
