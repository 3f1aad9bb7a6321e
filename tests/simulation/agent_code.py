"""Code of jobs that comes from a repository: the coordinator says which commit all ranks and attempts have."""

from collections.abc import Callable
from dataclasses import replace
from random import Random

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.data_events import CodeFetched
from muster.domain.data.code import JobCode
from tests.simulation.coordinator_program import CoordinatorProgram
from tests.simulation.truth import Sandbox
from tests.simulation.world import Life

PATIENCE = 3.0
"""Seconds until an agent that has no answer asks again."""
LOSSES = 0.05
"""How often a call of an agent, or the answer to it, is lost."""


class AgentCode:
    """The calls of one life of an agent for code.

    Every rank looks into the repository, where in truth the first does it for all; and its branch has moved for each.
    So they have the same only if the coordinator decides.
    """

    def __init__(self, life: Life, coordinator: CoordinatorProgram, chance: Random) -> None:
        self._life = life
        self._coordinator = coordinator
        self._chance = chance

    def have(self, sandbox: Sandbox, then: Callable[[], None]) -> None:
        """Go on once an execution has its code, if it wants some."""
        code = sandbox.assignment.role.code
        if code is None or not code.is_awaited:
            sandbox.tree = "" if code is None else code.tree
            then()
            return
        self._ask(sandbox, replace(code, tree=f"what {sandbox.execution} fetched", size=80), then)

    def _ask(self, sandbox: Sandbox, fetched: JobCode, then: Callable[[], None]) -> None:
        """Say what was fetched until the coordinator says what counts."""
        order, done = sandbox.assignment, False
        assert fetched.git is not None
        event = CodeFetched(job=order.job, asked=fetched.git, found=fetched)

        def told(cluster: Cluster) -> None:
            job = cluster.jobs.get(order.job)
            counts = None if job is None else job.spec.role_of(order.rank).code
            if counts is not None and self._arrives():
                self._life.after(0.01 * self._chance.random(), lambda: have(counts))

        def have(counts: JobCode) -> None:
            nonlocal done
            if not done:
                done, sandbox.tree = True, counts.tree
                then()

        def ask() -> None:
            if not done:
                self._life.after(PATIENCE * self._chance.uniform(0.5, 1.5), ask)
                if self._arrives():
                    self._coordinator.ask(event, lambda _: self._coordinator.read(told))

        ask()

    def _arrives(self) -> bool:
        return self._chance.random() >= LOSSES
