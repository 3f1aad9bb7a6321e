"""What shall go wrong, and when: drawn from a seed before anything begins."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

COORDINATOR = "coord"
"""The place of the coordinator, among the names of nodes."""

EVERY = 2.5
"""Seconds between two faults, on average."""


LONG = 420.0
"""Seconds from which on a run has time for set pieces."""

OUTAGE_AT = 0.33
"""The part of the run after which the coordinator goes away for so long that nodes without peers would be lost."""
OUTAGE = 105.0
CALM_BEFORE = 25.0
CALM_AFTER = 10.0
BLINK = 4.0
"""Seconds around set pieces, and of absences that nobody needs to notice."""


EARLY = 10.0
"""Seconds in which the coordinator may still be killed when a node has just been cut off."""


class Kind(StrEnum):
    """What goes wrong."""

    COORDINATOR = "coordinator killed"
    RELAY = "relay killed"
    AGENT = "agent killed"
    DOCKERD = "dockerd killed"
    CONTAINERD = "containerd killed"
    ENGINE = "dockerd and containerd killed"
    LAUNCHER = "launcher killed"
    SUPERVISOR = "supervisor killed"
    PROCESSES = "processes of a job killed one by one"
    DISK = "disk full"
    CUT = "link cut"
    HALF_OPEN = "link half-open"
    MUTE = "link one-way"
    LOSSY = "link lossy"


DEAD = frozenset({Kind.CUT, Kind.HALF_OPEN, Kind.MUTE})
"""Links over which nothing is acknowledged."""
LINKS = frozenset({Kind.CUT, Kind.HALF_OPEN, Kind.MUTE, Kind.LOSSY})
ENGINES = frozenset({Kind.DOCKERD, Kind.CONTAINERD, Kind.ENGINE})

DECK = (
    *([Kind.COORDINATOR] * 3 + [Kind.AGENT] * 5 + [Kind.DOCKERD] * 3 + [Kind.CONTAINERD, Kind.ENGINE]),
    *([Kind.LAUNCHER, Kind.SUPERVISOR, Kind.HALF_OPEN, Kind.MUTE] + [Kind.CUT] * 2 + [Kind.LOSSY] * 2),
    *([Kind.PROCESSES] * 4 + [Kind.DISK] * 3 + [Kind.RELAY] * 3),
)
"""Dealt out in random order, then shuffled again: so even a short run has each kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spell:
    """How long a fault surely was there, by the clock of `/proc/uptime`."""

    fault: "Fault"
    began: float
    ended: float
    mended: float
    """Then at the latest all was well again, as far as starting programs again makes it so."""

    def overlaps(self, begin: float, end: float) -> bool:
        """Whether it may have been there at some time between two."""
        return self.began < end and begin < self.mended


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of one place."""

    at: float
    """Seconds after the beginning."""
    kind: Kind
    place: str
    lasting: float
    """Seconds until it is mended."""
    share: float = 0.5
    """The share of packets lost."""

    @property
    def subject(self) -> str:
        """What is broken; it can be broken once at a time."""
        if self.kind in LINKS:
            return f"link of {self.place}"
        if self.kind in ENGINES:
            return f"engine of {self.place}"
        if self.kind is Kind.PROCESSES:
            return f"processes of {self.place}"
        if self.kind is Kind.RELAY:
            return f"relay of {self.place}"
        # That of a full disk is the program that has its state there: nobody kills and starts it meanwhile.
        return f"coordinator of {self.place}" if self.place == COORDINATOR else f"agent of {self.place}"

    def __str__(self) -> str:
        much = f", {self.share:.0%}" if self.kind is Kind.LOSSY else ""
        return f"{self.kind} on {self.place} for {self.lasting:.1f} s{much}"


def drawn(chance: Random, seconds: float, nodes: Sequence[str], disks: Sequence[str]) -> list[Fault]:
    """Faults that overlap at random, the last of them mended in time; long runs have their set pieces, too.

    `disks` are the places whose programs have a disk that can be filled.
    """
    pieces = list(_set_pieces(chance, seconds, nodes))
    faults = list(pieces)
    kinds = _dealt(chance)
    at = 1.0
    while at < seconds - 1:
        kind = next(kinds)
        fault = _fault(chance, kind, at, seconds, disks if kind is Kind.DISK else nodes)
        if not any(_collide(fault, each) for each in faults) and not any(_disturbs(fault, each) for each in pieces):
            faults.append(fault)
        at += chance.expovariate(1 / EVERY)
    return sorted(faults, key=lambda fault: fault.at)


def gangs_wanted_at(seconds: float) -> tuple[float, ...]:
    """Seconds after the beginning at which a gang should start for a set piece to have somebody to hit."""
    return tuple(part * seconds for part in (0.03, 0.22, 0.26, 0.54, 0.75)) if seconds >= LONG else ()


def _set_pieces(chance: Random, seconds: float, nodes: Sequence[str]) -> Iterator[Fault]:
    """What chance would bring too seldom: each lasts longer than it takes the shortest job to be lost."""
    if seconds < LONG:
        return
    first, second, third = chance.sample(nodes, 3)
    yield Fault(at=0.08 * seconds, kind=Kind.AGENT, place=first, lasting=80.0)
    yield Fault(at=OUTAGE_AT * seconds, kind=Kind.COORDINATOR, place=COORDINATOR, lasting=OUTAGE)
    yield Fault(at=0.60 * seconds, kind=Kind.CUT, place=second, lasting=90.0)
    yield Fault(at=0.80 * seconds, kind=chance.choice([Kind.HALF_OPEN, Kind.MUTE]), place=third, lasting=80.0)


def _collide(one: Fault, other: Fault) -> bool:
    """Whether both break the same thing at a time, or so shortly after each other that nothing was mended."""
    return one.subject == other.subject and one.at < other.at + other.lasting + 0.5 and other.at < one.at + one.lasting


def _disturbs(fault: Fault, piece: Fault) -> bool:
    """Whether it would spoil a set piece.

    The gang that it is to hit must have come to run by then. A coordinator that was just started gives everybody time.
    While it is away for long, agents may only blink.
    """
    begin, end = piece.at - CALM_BEFORE, piece.at + piece.lasting
    if piece.kind is Kind.COORDINATOR:
        blink = fault.kind in {Kind.AGENT, Kind.LAUNCHER} and fault.lasting <= BLINK
        return not blink and _overlaps(fault, begin, end + CALM_AFTER)
    late = fault.place == COORDINATOR and _overlaps(fault, piece.at + EARLY, end)
    return late or (fault.lasting > BLINK and _overlaps(fault, begin, piece.at))


def _overlaps(fault: Fault, begin: float, end: float) -> bool:
    return fault.at < end and begin < fault.at + fault.lasting


def _dealt(chance: Random) -> Iterator[Kind]:
    while True:
        yield from chance.sample(DECK, len(DECK))


def _fault(chance: Random, kind: Kind, at: float, seconds: float, places: Sequence[str]) -> Fault:
    place = chance.choice(places)
    if kind in {Kind.COORDINATOR, Kind.RELAY} or (kind in LINKS and chance.random() < 0.1):
        place = COORDINATOR
    lasting = _link_time(chance, seconds) if kind in LINKS else _absence(chance, kind)
    if place == COORDINATOR:
        lasting = min(lasting, 0.15 * seconds)  # nothing new begins meanwhile
    return Fault(
        at=at, kind=kind, place=place, lasting=min(lasting, seconds - at), share=round(chance.uniform(0.1, 0.7), 2)
    )


def _absence(chance: Random, kind: Kind) -> float:
    """Seconds until it comes back: as systemd does it, but now and then much longer; some kinds last seconds at
    least.
    """
    draw = chance.random()
    if kind is Kind.PROCESSES or (kind is Kind.DISK and draw < 0.93):
        return chance.uniform(3.0, 8.0)
    if draw < 0.65:
        return chance.uniform(0.05, 1.0)
    if draw < 0.93 or kind in {Kind.LAUNCHER, Kind.SUPERVISOR}:
        return chance.uniform(1.0, 6.0)
    return chance.uniform(15.0, 35.0)


def _link_time(chance: Random, seconds: float) -> float:
    """Blinks, what is longer than a lease, and, where there is time, what is long enough to be lost."""
    draw = chance.random()
    if draw < 0.55:
        return chance.uniform(0.2, 5.0)
    if draw < 0.85 or seconds < 300:
        return chance.uniform(5.0, 40.0)
    return chance.uniform(95.0, 140.0)
