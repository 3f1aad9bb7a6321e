"""The projects of a fleet, for those who only have to know whether one is there and what it is opened for."""

from collections.abc import Iterator, Mapping

from coordinator.core.events import ProjectAdded
from coordinator.engine.engine import Engine
from muster.domain.fleet.access import Project
from muster.domain.jobs.job import DEFAULT_PROJECT


async def make_default_project(engine: Engine) -> None:
    """Make the project that every fleet has, unless it is there; before anybody is served."""
    if DEFAULT_PROJECT not in engine.projects:
        await engine.apply(ProjectAdded(name=DEFAULT_PROJECT))


class KnownProjects(Mapping[str, Project]):
    """Projects by name, as the engine has them at each moment."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getitem__(self, name: str) -> Project:
        return self._engine.projects[name]

    def __contains__(self, name: object) -> bool:
        return name in self._engine.projects

    def __iter__(self) -> Iterator[str]:
        return iter(self._engine.projects)

    def __len__(self) -> int:
        return len(self._engine.projects)
