"""Clients that hold jobs, suspend them and change them, and let each go on after a while."""

from collections.abc import Callable
from datetime import timedelta

from coordinator.core.events import (
    ChangeRequested,
    Event,
    HoldRequested,
    ResumeRequested,
    SuspendRequested,
    UnholdRequested,
)
from coordinator.core.records import Job
from muster.domain.ids import JobId
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.queueing.change import JobChange
from tests.simulation.clients import Clients
from tests.simulation.scenario import Scenario
from tests.simulation.watcher import Watcher
from tests.simulation.world import World

SPELL = 30.0
"""Seconds for which a job is held or suspended, on average."""


class Holders:
    """All of them."""

    def __init__(self, world: World, clients: Clients, watcher: Watcher, scenario: Scenario) -> None:
        self._world = world
        self._clients = clients
        self._scenario = scenario
        self._chance = world.chance("holders")
        watcher.on_accept.append(self._accepted)

    def _accepted(self, job: Job) -> None:
        """Plan what happens to a job; in most scenarios that is nothing."""
        if job.spec.hold:
            self._later(lambda: self._let_go(job.id))
        while self._chance.random() < self._scenario.holds:
            act = self._chance.choice((self._hold, self._suspend, self._suspend, self._change))
            self._later(lambda act=act: act(job.id))  # type: ignore[misc]  # mypy infers no lambda with a default

    def _hold(self, job: JobId) -> None:
        by_operator = self._chance.random() < 0.3
        self._ask(lambda: HoldRequested(job=job, by_operator=by_operator), lambda: self._let_go(job))

    def _let_go(self, job: JobId) -> None:
        self._ask(lambda: UnholdRequested(job=job, by_operator=True))

    def _suspend(self, job: JobId) -> None:
        self._ask(lambda: SuspendRequested(job=job), lambda: self._resume(job))

    def _resume(self, job: JobId) -> None:
        self._ask(lambda: ResumeRequested(job=job))

    def _change(self, job: JobId) -> None:
        change = JobChange(
            priority=self._chance.randint(-9, 9),
            run=self._chance.choice((None, timedelta(seconds=30))),
            queue=self._chance.choice((None, timedelta(seconds=120))),
            job_class=self._chance.choice((None, *JobClass)),
            pools=self._chance.choice((None, ())),
        )
        self._ask(lambda: ChangeRequested(job=job, change=change))

    def _ask(self, request: Callable[[], Event], undo: Callable[[], None] | None = None) -> None:
        """Give an order, and take it back after a while."""
        self._clients.insist(request, None if undo is None else lambda _: self._later(undo))

    def _later(self, act: Callable[[], None]) -> None:
        self._world.after(self._chance.expovariate(1 / SPELL), act)
