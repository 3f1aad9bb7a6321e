"""An admin who takes nodes out of service from a time to a time, and gives them back."""

from collections.abc import Callable
from datetime import timedelta

from coordinator.core.answers import Answer, WindowKept
from coordinator.core.events import WindowRemoved, WindowSet
from muster.domain.fleet.window import Window
from muster.domain.ids import NodeId
from muster.domain.jobs.job import DEFAULT_PROJECT
from tests.simulation.clients import Clients
from tests.simulation.coordinator_program import CoordinatorProgram
from tests.simulation.scenario import Scenario
from tests.simulation.watcher import Watcher
from tests.simulation.world import World


class WindowAdmin:
    """Sets one window after the other; in most scenarios there is nothing to do."""

    def __init__(
        self, world: World, clients: Clients, coordinator: CoordinatorProgram, watcher: Watcher, scenario: Scenario
    ) -> None:
        self._world = world
        self._clients = clients
        self._coordinator = coordinator
        self._watcher = watcher
        self._scenario = scenario
        self._chance = world.chance("window admin")
        self._windows = 0

    def begin(self) -> None:
        """Set windows for as long as there is trouble."""
        if self._scenario.holds:
            self._later(self._set)

    def _set(self) -> None:
        if self._world.seconds > self._scenario.seconds:
            return
        self._windows += 1
        begins = self._coordinator.clock.now + timedelta(seconds=self._chance.uniform(-5.0, 120.0))
        node = NodeId(f"node-{self._chance.randint(1, len(self._scenario.parts))}")
        window = Window(
            name=f"window-{self._windows}",
            begins=begins,
            ends=begins + timedelta(seconds=self._chance.uniform(10.0, 90.0)),
            nodes=(node,) if self._chance.random() < 0.6 else (),
            labels={"zone": "a"},
            project=DEFAULT_PROJECT if self._chance.random() < 0.1 else "",
            notice=timedelta(seconds=self._chance.choice((0.0, 60.0, 3600.0))),
        )

        def answered(answer: Answer) -> None:
            if isinstance(answer, WindowKept):
                self._watcher.calendar.windows[window.name] = window
            self._later(lambda: self._remove(window.name))

        self._clients.insist(lambda: WindowSet(window=window), answered)
        self._later(self._set)

    def _remove(self, name: str) -> None:
        self._watcher.calendar.windows.pop(name, None)
        self._clients.insist(lambda: WindowRemoved(name=name))

    def _later(self, act: Callable[[], None]) -> None:
        self._world.after(self._chance.expovariate(1 / 40.0), act)
