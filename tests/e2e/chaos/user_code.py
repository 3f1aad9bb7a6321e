"""What the workers run: numbered lines on both streams, and a stamp for each step in a file that all share.

A stamp is one write to a file that was opened for appending, so the order of stamps is the order in which things
happened, whatever the node, the runtime or the attempt.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SCRIPT = """
stamp() { read up idle < /proc/uptime; printf '%s\\n' "$MUSTER_ATTEMPT $MUSTER_RANK $1 $up" >> "$CHAOS_STAMPS"; }
[ "$CHAOS_DEAF" = 1 ] && trap '' TERM || trap 'stamp "stopped $n"; exit 143' TERM
n=0
stamp "start 0"
while [ $n -lt $CHAOS_STEPS ]; do
  burst=0
  while [ $burst -lt $CHAOS_BURST ]; do
    n=$((n + 1)); burst=$((burst + 1))
    echo "out $n"; echo "err $n" >&2
  done
  stamp "line $n"
  sleep $CHAOS_PAUSE
done
code=0
[ $MUSTER_RANK = $CHAOS_BAD_RANK ] && [ $MUSTER_ATTEMPT -le $CHAOS_BAD_ATTEMPTS ] && code=$CHAOS_BAD_CODE
stamp "end $n"
stamp "code $code"
exit $code
"""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Something that a worker did."""

    attempt: int
    rank: int
    what: str
    number: int
    at: float
    """The time by the clock of `/proc/uptime`, which all nodes of the testbed share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deeds:
    """What one worker did, by its own account."""

    starts: int
    lines: int
    """So many lines were surely printed on each stream."""
    ended: bool
    """Whether it came to its end by itself, and no line came after those."""
    first_at: float
    last_at: float
    """When it was surely there; 0: it never was."""
    code: int | None
    """The exit code that it was about to end with; None: it was ended, or is not known to have ended."""


def stamps(path: Path) -> list[Stamp]:
    """The stamps of a job, in the order in which they were made."""
    if not path.exists():
        return []
    return [_stamp(*line.split()) for line in path.read_text().splitlines()]


def deeds(of: Sequence[Stamp], attempt: int, rank: int) -> Deeds:
    """What the worker of a rank did in an attempt."""
    mine = [stamp for stamp in of if (stamp.attempt, stamp.rank) == (attempt, rank)]
    codes = [stamp.number for stamp in mine if stamp.what == "code"]
    return Deeds(
        starts=sum(stamp.what == "start" for stamp in mine),
        lines=max((stamp.number for stamp in mine if stamp.what in {"line", "end"}), default=0),
        ended=any(stamp.what == "end" for stamp in mine),
        first_at=mine[0].at if mine else 0.0,
        last_at=mine[-1].at if mine else 0.0,
        code=codes[0] if codes else None,
    )


def overlaps(of: Sequence[Stamp]) -> Iterator[str]:
    """Attempts that went on when a later one had begun."""
    newest, late = 0, Counter[str]()
    for stamp in of:
        if stamp.attempt < newest:
            late[f"rank {stamp.rank} of attempt {stamp.attempt} went on when attempt {newest} had begun"] += 1
        newest = max(newest, stamp.attempt)
    yield from (f"{what} ({count} stamps)" for what, count in late.items())


def _stamp(attempt: str, rank: str, what: str, number: str, at: str) -> Stamp:
    return Stamp(int(attempt), int(rank), what, int(number), float(at))
