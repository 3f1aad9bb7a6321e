"""Gangs as evictions see them: one that looks for room, and those that run and might make some."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from coordinator.core.sharing.pool_standings import Path
from coordinator.core.sharing.standing import Standing
from muster.domain.fleet.quota import NO_AMOUNTS, Amounts
from muster.domain.ids import AttemptId, NodeId
from muster.domain.jobs.job_class import JobClass


@dataclass(slots=True, kw_only=True, eq=False)  # by identity: a gang runs once
class RunningGang:
    """An attempt that holds seats and was not ordered to stop."""

    attempt: AttemptId
    path: Path
    """The standings of its project, from the department down."""
    size: Amounts
    job_class: JobClass
    priority: int
    level: int
    """How many lower priorities run preemptible in its own project."""
    lost: int
    """Work that would be lost, in thousandths of a GPU times seconds."""
    order: int
    """The larger, the newer."""
    freed: Mapping[NodeId, Amounts]
    """What each of its nodes would get back."""
    is_safe: bool = False
    """Whether other projects may not evict it yet."""
    is_safe_within: bool = False
    """Whether its own project may not evict it yet."""

    @property
    def standing(self) -> tuple[int, int]:
        """The place in its own project but for the time of its submit; the larger gives way to the smaller."""
        return (self.job_class.order, -self.priority)


class Lift(NamedTuple):
    """What victims of its own project must free so that no term bars a job any more."""

    amounts: Amounts = NO_AMOUNTS
    jobs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RoomSeeker:
    """A queued job that finds no room, or is barred."""

    path: Path
    size: Amounts
    job_class: JobClass
    priority: int
    counted: tuple[int, ...]
    """The resources that count in its pool."""
    lift: Lift | None = None
    """What bars it; None: nothing does."""

    @property
    def standing(self) -> tuple[int, int]:
        """The same as that of a gang that runs."""
        return (self.job_class.order, -self.priority)

    @property
    def project(self) -> Standing:
        """The standing of its project."""
        return self.path[-1]


class Seats(Protocol):
    """The seats that a job looks for, in what is free and in what others would free."""

    @property
    def missing(self) -> int:
        """How many executions find no seat."""
        ...

    @property
    def counts(self) -> bool:
        """Whether all find a seat for sure, as far as can be seen, once as many more fit as are missing."""
        ...

    def slots(self, node: NodeId, freed: Amounts) -> int:
        """How many executions fit on a node with so much more than is free there; not fewer than do."""
        ...

    def hold(self, gangs: Sequence[RunningGang]) -> bool:
        """Whether the whole gang can be placed if these were gone."""
        ...


class SeatCount:
    """How many more executions fit as gangs go one after the other; only their nodes are looked at."""

    def __init__(self, seats: Seats, alone: dict[RunningGang, int], gangs: Iterable[RunningGang] = ()) -> None:
        """`alone`: how many more executions fit through one gang alone; what is found out about that comes in."""
        self._seats = seats
        self._alone = alone
        self._freed: dict[NodeId, Amounts] = {}
        self.gain = 0
        """Executions that fit more than without these gangs gone."""
        for gang in gangs:
            self.add(gang)

    def add(self, gang: RunningGang) -> None:
        """Count with this one gone, too."""
        if self._freed.keys().isdisjoint(gang.freed):
            # As on most nodes: no other is on them, and so its gain is what it is by itself.
            self._freed.update(gang.freed)
            self.gain += self._gain_alone(gang)
            return
        for node, amounts in gang.freed.items():
            before = self._freed.get(node)
            self._set(node, amounts if before is None else before.plus(amounts))

    def remove(self, gang: RunningGang) -> None:
        """Count with this one there again."""
        if all(self._freed[node] is amounts for node, amounts in gang.freed.items()):
            for node in gang.freed:
                del self._freed[node]
            self.gain -= self._gain_alone(gang)
            return
        for node, amounts in gang.freed.items():
            self._set(node, self._freed[node].plus(amounts.times(-1)))

    def _gain_alone(self, gang: RunningGang) -> int:
        gain = self._alone.get(gang)
        if gain is None:
            slots = self._seats.slots
            gain = self._alone[gang] = sum(
                slots(node, amounts) - slots(node, NO_AMOUNTS) for node, amounts in gang.freed.items()
            )
        return gain

    def _set(self, node: NodeId, freed: Amounts) -> None:
        slots = self._seats.slots
        self.gain += slots(node, freed) - slots(node, self._freed.get(node, NO_AMOUNTS))
        if freed == NO_AMOUNTS:
            self._freed.pop(node, None)
        else:
            self._freed[node] = freed


@dataclass(slots=True)
class CountedSeats:
    """Seats that somebody counts."""

    missing: int
    slots: Callable[[NodeId, Amounts], int]
    """How many executions fit on a node with so much more than is free there."""
    hold: Callable[[Sequence[RunningGang]], bool]
    """Whether the whole gang can be placed if these were gone."""
    counts: bool = False
    """Whether what is counted is a proof."""
