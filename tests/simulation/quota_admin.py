"""An admin who says what departments and projects may have, and changes that again and again."""

from collections.abc import Callable
from datetime import timedelta

from coordinator.core.answers import Answer, Refused
from coordinator.core.events import Event, ProjectAdded, QuotasChanged
from coordinator.core.requests.quotas import unit_of
from muster.domain.fleet.quota import (
    WITHOUT_TERMS,
    AmountBounds,
    QuotaTerms,
    QuotaUnit,
    UnitChange,
    UnitKind,
    UnitTerms,
)
from muster.domain.jobs.interactive import NEVER_IDLE
from muster.domain.jobs.job import DEFAULT_PROJECT
from tests.simulation.clients import Clients
from tests.simulation.coordinator_program import CoordinatorProgram
from tests.simulation.scenario import IDLE, NODE_TYPES, TEAMS, Scenario
from tests.simulation.world import World

BETWEEN = 40.0
"""Seconds between two changes, in the middle."""


class QuotaAdmin:
    """Says something of all units first, and then of one after the other; in most scenarios there is nothing to do."""

    def __init__(self, world: World, clients: Clients, coordinator: CoordinatorProgram, scenario: Scenario) -> None:
        self._world = world
        self._clients = clients
        self._coordinator = coordinator
        self._scenario = scenario
        self._chance = world.chance("quota admin")
        self._fancy = world.chance("rare terms of the quota admin")
        self._left = 0
        """Projects that are still to be added."""

    def begin(self) -> None:
        """Add the projects, and change terms for as long as there is trouble."""
        if self._scenario.quotas:
            self._left = len(TEAMS)
            for name in TEAMS:
                self._clients.insist(lambda name=name: ProjectAdded(name=name), self._added)  # type: ignore[misc]  # mypy infers no lambda with a default

    def _added(self, _: Answer) -> None:
        self._left -= 1
        if not self._left:
            gpus = sum(parts.gpus for parts in self._scenario.parts)
            self._set([self._unit(name, gpus) for name in ("east", "west", *TEAMS, DEFAULT_PROJECT)], self._later)

    def _change(self) -> None:
        if self._world.seconds > self._scenario.seconds:
            everything = [self._unit(name, 0, nothing=True) for name in ("east", "west", *TEAMS, DEFAULT_PROJECT)]
            self._set(everything, lambda: None)
            return
        gpus = sum(parts.gpus for parts in self._scenario.parts)
        self._set([self._unit(self._chance.choice(("east", "west", *TEAMS)), gpus)], self._later)

    def _later(self) -> None:
        self._world.after(self._chance.expovariate(1 / BETWEEN), self._change)

    def _set(self, units: list[QuotaUnit], then: Callable[[], None]) -> None:
        """Say it, and do what comes then once it is answered, as what is said late must not undo it."""

        def request() -> Event:
            cluster = self._coordinator.cluster
            return QuotasChanged(
                changes=tuple(UnitChange(before=unit_of(cluster, unit.name), after=unit) for unit in units)
            )

        def answered(answer: Answer) -> None:
            if isinstance(answer, Refused):
                self._world.tell(f"is refused: {answer.message}", "quota admin")
            then()

        self._clients.insist(request, answered)

    def _unit(self, name: str, gpus: int, *, nothing: bool = False) -> QuotaUnit:
        """What a unit is promised of so many GPUs; `nothing`: no word is said of it any more."""
        project = name in TEAMS or name == DEFAULT_PROJECT
        return QuotaUnit(
            name=name,
            kind=UnitKind.PROJECT if project else UnitKind.DEPARTMENT,
            department=TEAMS.get(name, ""),
            terms=WITHOUT_TERMS if nothing else self._terms(gpus),
        )

    def _terms(self, gpus: int) -> UnitTerms:
        chance = self._chance
        return UnitTerms(
            everywhere=QuotaTerms(
                quota=AmountBounds(gpus=chance.choice((None, 0, 1000, gpus * 250, gpus * 500))),
                limit=AmountBounds(gpus=chance.choice((None, None, None, 2000, gpus * 750))),
                weight=chance.choice((None, None, 0, 1, 3)),
                rank=chance.choice((None, None, -1, 1)),
                min_runtime=timedelta(seconds=chance.choice((0.0, 0.0, 2.0, 20.0))),
                min_runtime_within=timedelta(seconds=chance.choice((0.0, 0.0, 5.0))),
                max_running=chance.choice((None, None, None, None, 2)),
                grace_max=chance.choice((None, timedelta(seconds=1))),
                idle=self._fancy.choice((None, None, None, IDLE, NEVER_IDLE)),
                types=self._fancy.choice((None, None, None, *((each,) for each in NODE_TYPES))),
            )
        )
