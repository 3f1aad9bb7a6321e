"""What happened in a run of chaos, with times, so that a failure can be understood."""

import sys
import time
from collections import Counter
from datetime import UTC, datetime


class Story:
    """Lines with the time of day, which the programs' logs have too, and the seconds since the beginning."""

    def __init__(self, *, aloud: bool) -> None:
        self._aloud = aloud
        self._began = time.monotonic()
        self.lines: list[str] = []
        self.counts: Counter[str] = Counter()
        """How often what happened, for the summary."""
        self.findings: list[str] = []
        """What must never be."""

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    def tell(self, text: str, *, counted: str = "") -> None:
        """Add a line, and count it as something."""
        if counted:
            self.counts[counted] += 1
        line = f"{datetime.now(UTC):%H:%M:%S.%f} {self.now:7.1f}  {text}"
        self.lines.append(line)
        if self._aloud:
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()

    def find(self, text: str) -> None:
        """Add something that must never be."""
        self.findings.append(text)
        self.tell(f"FOUND: {text}")
