"""When a job that failed is started again: the rules that its owner gives it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

MAX_EXIT_CODE = 255
MOST_RESTARTS = 1000
"""Restarts of one job after failures of its code, and as many after those of the infrastructure."""
SHORTEST_BACKOFF = timedelta(seconds=1)
"""Shortest pause that may be asked for: it doubles each time, so a job that always fails soon takes next to nothing."""


@dataclass(frozen=True, slots=True)
class ExitCodes:
    """Some exit codes, as ranges: `1,3-5`."""

    ranges: tuple[tuple[int, int], ...] = ()
    """First and last of each, in order, apart from each other."""

    def __contains__(self, code: int) -> bool:
        return any(first <= code <= last for first, last in self.ranges)

    def __str__(self) -> str:
        return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in self.ranges)


def parse_exit_codes(text: str) -> ExitCodes:
    """Exit codes written as `1,3-5`; raises ValueError with the reason."""
    codes: set[int] = set()
    for part in text.replace(" ", "").split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"{part!r} is no exit code or range of them; write them like 1,3-5")
        begin, end = int(first), int(last or first)
        if not 1 <= begin <= end <= MAX_EXIT_CODE:
            raise ValueError(f"{part!r} does not lie in 1-{MAX_EXIT_CODE}, smaller number first")
        codes.update(range(begin, end + 1))
    return ExitCodes(tuple(_runs(sorted(codes))))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitRules:
    """What exit codes of user code mean for the next attempt; `fail` wins over `restart`."""

    restart: ExitCodes | None = None
    """Only these are worth another attempt; None: all."""
    fail: ExitCodes = ExitCodes()
    """These end the job, however many restarts are left."""


NO_EXIT_RULES = ExitRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """When the whole gang starts again as a new attempt after a failure."""

    limit: int = 0
    """How often after failures of user code."""
    infrastructure: int = 0
    """How often after failures that are not the code's: lost nodes, daemons that went away, ports, images, GPUs."""
    backoff: timedelta = timedelta(seconds=5)
    """Pause before the second restart, doubled before each one after it; the first restart comes at once."""


def _runs(codes: Sequence[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for code in codes:
        if runs and runs[-1][1] == code - 1:
            runs[-1] = (runs[-1][0], code)
        else:
            runs.append((code, code))
    return runs
