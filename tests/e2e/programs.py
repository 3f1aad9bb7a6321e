"""A program that runs beside a test: its log, its signals, its end."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

TAIL = 2000
"""Characters of a log that an error message quotes."""


class ProgramError(AssertionError):
    """A program ended early or did not end; quotes the end of its log."""


def environment(extra: Mapping[str, str] = {}) -> dict[str, str]:
    """Variables of this process without proxies, which would catch the calls between the nodes."""
    kept = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    return {**kept, **extra}


class Program:
    """A started program in a session of its own, with its output in a file."""

    def __init__(self, name: str, argv: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment(env or {}),
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process id, seen from here."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    @property
    def output(self) -> str:
        """All that it printed; where its log was removed with its directory, as after a test, a line that says so."""
        try:
            return self.log.read_text(errors="replace")
        except FileNotFoundError:
            return f"(the log {self.log} was removed)"

    def check(self) -> None:
        """Raise ProgramError if it has ended."""
        if not self.running:
            raise ProgramError(f"{self.name} ended with {self._process.returncode}:\n{self.output[-TAIL:]}")

    def send(self, number: signal.Signals) -> None:
        """Signal it; harmless when it has ended."""
        if self.running:
            self._process.send_signal(number)

    def wait(self, within: float) -> int:
        """The exit code, as subprocess has it; ProgramError after `within` seconds."""
        try:
            return self._process.wait(within)
        except subprocess.TimeoutExpired:
            raise ProgramError(f"{self.name} did not end in {within:g} s:\n{self.output[-TAIL:]}") from None

    def stop(self, within: float = 20.0) -> None:
        """SIGTERM, and SIGKILL when that does not help; it has ended afterwards."""
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        try:
            self._process.wait(within)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """SIGKILL; it has ended afterwards."""
        self.send(signal.SIGKILL)
        self._process.wait()
