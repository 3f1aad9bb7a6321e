"""Clients that submit, stop and delete, and try again with the same key when no answer comes."""

from collections.abc import Callable

from coordinator.core.answers import Accepted, AllAccepted, Answer, NoneAccepted, Refused
from coordinator.core.events import (
    CordonRequested,
    DeleteRequested,
    Event,
    JobsSubmitted,
    JobSubmitted,
    RemovalRequested,
    StopRequested,
    UncordonRequested,
)
from coordinator.core.records import Job
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.job import JobSpec
from tests.simulation.coordinator_program import CoordinatorProgram
from tests.simulation.scenario import Scenario
from tests.simulation.watcher import Watcher
from tests.simulation.world import World

PATIENCE = 3.0
"""Seconds until a client asks again."""
LOSSES = 0.05
"""How often a request or its answer is lost while there is trouble."""
SWEEPS = 0.1
"""How often a job is submitted together with another one like it."""


class Clients:
    """All of them."""

    def __init__(self, world: World, coordinator: CoordinatorProgram, watcher: Watcher, scenario: Scenario) -> None:
        self.losses = LOSSES
        self._world = world
        self._coordinator = coordinator
        self.watcher = watcher
        self._scenario = scenario
        self._chance = world.chance("clients")
        self._jobs = 0
        self._pending = 0
        self._in_maintenance: set[NodeId] = set()

    @property
    def waiting(self) -> int:
        """Requests that have no answer yet."""
        return self._pending

    def begin(self) -> None:
        """Plan all submits; what follows from them is planned when they are accepted."""
        for number, (at, spec) in enumerate(self._scenario.specs):
            self._world.after(at, lambda number=number, spec=spec: self._submit(f"key {number}", spec))  # type: ignore[misc]  # mypy infers no lambda with a default

    def stop(self, job: JobId) -> None:
        """Stop a job, and see that the order is stored once it is acknowledged."""

        def stopped(answer: Answer) -> None:
            if isinstance(answer, Accepted):
                self.watcher.check_stop(job)

        self.insist(lambda: StopRequested(job=job), stopped)

    def delete(self, job: JobId, *, force: bool) -> None:
        self.watcher.deletable[job] = None
        self.insist(lambda: DeleteRequested(job=job, force=force))

    def remove_node(self, node: NodeId) -> None:
        """An operator gives up a node that has lost its power for good, and again if its last words bring it back."""
        self.insist(lambda: RemovalRequested(node=node))
        self._world.after(100.0, lambda: self.remove_node(node))

    def cordon_node(self, node: NodeId, spell: float, *, restart_jobs: bool) -> None:
        """An operator wants nothing new on a node, for a while."""

        def cordoned(_: Answer) -> None:
            self._world.after(spell, uncordon)

        def uncordon() -> None:
            self.watcher.uncordoned.add(node)
            self.insist(lambda: UncordonRequested(node=node), lambda _: self._in_maintenance.discard(node))

        if node in self._in_maintenance:
            return
        self._in_maintenance.add(node)
        self.watcher.uncordoned.discard(node)
        self.insist(lambda: CordonRequested(node=node, restart_jobs=restart_jobs), cordoned)

    def _submit(self, key: str, spec: JobSpec) -> None:
        anyway, dry_run = self._chance.random() < 0.7, self._chance.random() < 0.03

        keys = (key, f"{key}, second job") if self._chance.random() < SWEEPS else ()

        def submission(key: str) -> JobSubmitted:
            self._jobs += 1
            return JobSubmitted(
                job=JobId(f"j{self._jobs}"), spec=spec, queue_anyway=anyway, dry_run=dry_run, idempotency_key=key
            )

        def request() -> Event:
            return JobsSubmitted(jobs=tuple(map(submission, keys))) if keys else submission(key)

        taken = None if dry_run else self._submitted
        for _ in range(2 if self._chance.random() < 0.05 else 1):  # some clients ask twice at once
            self.insist(request, taken)

    def _submitted(self, answer: Answer) -> None:
        if isinstance(answer, Refused):
            self._world.tell(f"is refused: {answer.message}", "clients")
            return
        if isinstance(answer, NoneAccepted):
            for each in answer.refused.values():
                self._world.tell(f"is refused with others: {each.message}", "clients")
            return
        assert isinstance(answer, Accepted | AllAccepted)
        for job in (answer.job,) if isinstance(answer, Accepted) else answer.jobs:
            self._accepted(job)

    def _accepted(self, accepted: Job) -> None:
        job = accepted.id
        self._world.tell(f"is accepted: {accepted.spec.size} executions", job)
        self.watcher.accept(accepted)
        while self._chance.random() < self._scenario.client_nerves:
            wish = self._chance.choice((self.stop, self._delete_meekly, self._delete_with_force))
            self._world.after(self._chance.expovariate(1 / 20.0), lambda wish=wish: wish(job))  # type: ignore[misc]  # mypy infers no lambda with a default

    def _delete_meekly(self, job: JobId) -> None:
        self.delete(job, force=False)

    def _delete_with_force(self, job: JobId) -> None:
        self.delete(job, force=True)

    def insist(self, request: Callable[[], Event], taken: Callable[[Answer], None] | None = None) -> None:
        """Ask until there is an answer."""
        self._pending += 1
        done = False

        def answered(answer: Answer) -> None:
            nonlocal done
            if done:
                return
            done = True
            self._pending -= 1
            if taken is not None:
                taken(answer)

        def ask() -> None:
            if done:
                return
            self._world.after(PATIENCE * self._chance.uniform(0.5, 1.5), ask)
            if self._chance.random() >= self.losses:
                event = request()
                self._world.tell(f"client asks: {type(event).__name__}", getattr(event, "job", ""))
                self._coordinator.ask(event, lambda answer: self._answer(answer, answered))

        self._world.after(0.01 * self._chance.random(), ask)

    def _answer(self, answer: Answer, answered: Callable[[Answer], None]) -> None:
        if self._chance.random() >= self.losses:
            self._world.after(0.005 * self._chance.random(), lambda: answered(answer))
