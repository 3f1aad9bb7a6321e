"""An admin who adds a project and removes it, again and again, while clients submit jobs to it."""

from collections.abc import Callable

from coordinator.core.answers import Answer, ProjectGone, RefusalCause, Refused
from coordinator.core.events import ProjectAdded, ProjectRemoved
from muster.domain.ids import JobId
from tests.simulation.clients import Clients
from tests.simulation.scenario import PASSING_PROJECT, Scenario
from tests.simulation.watcher import Watcher
from tests.simulation.world import World


class ProjectAdmin:
    """Does what a refusal says: stops the jobs of a project that is to go, deletes those of one that is gone."""

    def __init__(self, world: World, clients: Clients, watcher: Watcher, scenario: Scenario) -> None:
        self._world = world
        self._clients = clients
        self._watcher = watcher
        self._scenario = scenario
        self._chance = world.chance("project admin")
        self.removed = 0
        self.refused = 0
        """How often the project was still in use, or something was left of it."""

    def begin(self) -> None:
        """Add the project, and go on for as long as there is trouble; in most scenarios there is nothing to do."""
        if self._scenario.project_spell:
            self._add()

    def _add(self) -> None:
        self._clients.insist(lambda: ProjectAdded(name=PASSING_PROJECT), self._added)

    def _added(self, answer: Answer) -> None:
        self._note(answer)
        self._later(self._remove)

    def _remove(self) -> None:
        self._clients.insist(lambda: ProjectRemoved(name=PASSING_PROJECT), self._removed)

    def _removed(self, answer: Answer) -> None:
        self._note(answer)
        if isinstance(answer, Refused) and answer.cause is RefusalCause.CONFLICT:
            for job in self._jobs():
                self._clients.stop(job)
            self._later(self._remove)
            return
        for job in self._jobs():
            self._clients.delete(job, force=False)
        self._later(self._add)

    def _note(self, answer: Answer) -> None:
        self._watcher.check_project(PASSING_PROJECT, answer)
        self.removed += isinstance(answer, ProjectGone)
        self.refused += isinstance(answer, Refused)

    def _jobs(self) -> list[JobId]:
        """Jobs of the project that clients were told of, and nobody has wanted to have deleted yet."""
        accepted = self._watcher.accepted.items()
        return [job for job, spec in accepted if spec.project == PASSING_PROJECT and job not in self._watcher.deletable]

    def _later(self, act: Callable[[], None]) -> None:
        if self._world.seconds < self._scenario.seconds:
            self._world.after(self._chance.expovariate(1 / self._scenario.project_spell), act)
