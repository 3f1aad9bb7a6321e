"""Gangs as evictions see them: one that looks for room, and those that run and might make some."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from coordinator.core.sharing.pool_standings import Path
from coordinator.core.sharing.standing import Standing
from muster.domain.fleet.quota import NO_AMOUNTS, Amounts
from muster.domain.ids import AttemptId, NodeId
from muster.domain.jobs.job_class import JobClass


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)  # by identity: a gang runs once
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
    lost_seconds: int
    """Work that would be lost: since its last checkpoint, or else since its start."""
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

    def gain(self, gangs: Sequence[RunningGang]) -> int:
        """How many more executions may find one if these were gone; not fewer than do."""
        ...

    def hold(self, gangs: Sequence[RunningGang]) -> bool:
        """Whether the whole gang can be placed if these were gone."""
        ...


@dataclass(slots=True)
class CountedSeats:
    """Seats that are counted node by node, so that only nodes of victims are looked at."""

    missing: int
    slots: Callable[[NodeId, Amounts], int]
    """How many executions fit on a node with so much more than is free there."""
    proof: Callable[[Sequence[RunningGang]], bool]
    """Whether the whole gang can be placed if these were gone."""
    _without: dict[NodeId, int] = field(default_factory=dict)
    """How many fit on a node as it is."""

    def gain(self, gangs: Sequence[RunningGang]) -> int:
        """How many more executions fit on the nodes of these."""
        freed: dict[NodeId, Amounts] = {}
        for gang in gangs:
            for node, amounts in gang.freed.items():
                freed[node] = freed[node].plus(amounts) if node in freed else amounts
        return sum(self.slots(node, amounts) - self._now(node) for node, amounts in freed.items())

    def hold(self, gangs: Sequence[RunningGang]) -> bool:
        """Whether the proof says so."""
        return self.proof(gangs)

    def _now(self, node: NodeId) -> int:
        if node not in self._without:
            self._without[node] = self.slots(node, NO_AMOUNTS)
        return self._without[node]
