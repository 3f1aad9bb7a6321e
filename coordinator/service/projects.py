"""Operations on projects: which there are, and what each is opened for."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Protocol

from coordinator.clock import wall_time
from coordinator.completion import completed
from coordinator.core.answers import Answer, ProjectGone, ProjectKept
from coordinator.core.events import ProjectAdded, ProjectChanged, ProjectRemoved, ProjectStorageLimited
from coordinator.engine.engine import Engine, Freshness
from coordinator.service.causes import answer_to
from coordinator.service.operations import Operations
from coordinator.trust.accounts import project_name
from coordinator.trust.caller import Caller
from coordinator.trust.permissions import changes
from coordinator.trust.registry import Registry
from muster.domain.errors import ConflictError, UnknownNameError
from muster.domain.fleet.access import OPEN, Access, AuditEntry, Permissions, Project, no_project
from muster.domain.fleet.project_use import ProjectUse
from muster.domain.quantity import size_text


class KeptInProjects(Protocol):
    """What is kept beside the engine and belongs to projects."""

    writing: asyncio.Lock
    """Held while it changes."""

    def uses_of(self, project: str) -> tuple[ProjectUse, ...]:
        """What of it keeps a project from being removed."""
        ...


class ProjectOperations:
    """What callers may do with projects; in a fleet of one machine all are `open_for_all`."""

    def __init__(
        self,
        operations: Operations,
        engine: Engine,
        registry: Registry,
        kept: Sequence[KeptInProjects],
        *,
        open_for_all: bool,
    ) -> None:
        self._operations = operations
        self._engine = engine
        self._registry = registry
        self._kept_in = kept
        self._open_for_all = open_for_all

    async def list(self, caller: Caller) -> Sequence[Project]:
        """Projects that the caller may look at, by name."""
        async with self._operations.begin(caller, "projects.list"):
            known = await self._engine.query(
                lambda cluster, _: sorted(cluster.projects.items()), after=Freshness.COMMITTED
            )
            return [self.shown(project) for name, project in known if caller.may(Access.VIEWER, name)]

    async def get(self, caller: Caller, name: str) -> Project:
        """One project; raises UnknownNameError for one that the caller may not look at."""
        async with self._operations.begin(caller, "projects.get", name) as operation:
            operation.require_in(name)
            found = await self._engine.query(lambda cluster, _: cluster.projects.get(name), after=Freshness.COMMITTED)
            if found is None:
                raise UnknownNameError(no_project(name))
            return self.shown(found)

    async def add(self, caller: Caller, name: str) -> Project:
        """Make a project; raises ConflictError where there is one of that name, or something is left of one."""
        async with self._operations.begin(caller, "projects.add", name) as operation:
            kept = await self._kept(ProjectAdded(name=project_name(name), uses=self._uses_of(name)))
            await self._note(operation.done())
            return kept.project

    async def allow(self, caller: Caller, name: str, permissions: Permissions) -> Project:
        """The project, opened for this and nothing else; jobs that were accepted are what they were."""
        async with self._operations.begin(caller, "projects.allow", name) as operation:
            if self._open_for_all:
                raise ConflictError("the projects of `muster up` are open for everything; there is nothing to allow")
            kept = await self._kept(ProjectChanged(name=name, permissions=permissions))
            assert kept.before is not None
            if kept.project.permissions.attach != kept.before.permissions.attach:
                self._registry.changes.on_less(None)
            await self._note(operation.done(changes(kept.before.permissions, kept.project.permissions)))
            return kept.project

    async def limit_storage(self, caller: Caller, name: str, storage: int) -> Project:
        """The project, which may keep so many bytes in the depot from now on; what is there stays."""
        async with self._operations.begin(caller, "projects.storage", name) as operation:
            kept = await self._kept(ProjectStorageLimited(name=name, storage=storage))
            assert kept.before is not None
            await self._note(operation.done(f"{size_text(kept.before.storage)} to {size_text(storage)}"))
            return self.shown(kept.project)

    async def remove(self, caller: Caller, name: str) -> Project:
        """Forget a project that nothing uses; the project as it was. Its jobs that have ended stay.

        Raises ConflictError with what uses it, and what to do about each.
        """
        async with self._operations.begin(caller, "projects.remove", name) as operation:
            async with AsyncExitStack() as locks:
                for writing in (self._registry.changes.writing, *(each.writing for each in self._kept_in)):
                    await locks.enter_async_context(writing)
                answer = await self._answer(ProjectRemoved(name=name, uses=self._uses_of(name), cause=operation.cause))
            assert isinstance(answer, ProjectGone)
            await self._note(operation.done())
            return self.shown(answer.project)

    def shown(self, project: Project) -> Project:
        """A project as callers see it."""
        return replace(project, permissions=OPEN) if self._open_for_all else project

    def _uses_of(self, name: str) -> tuple[ProjectUse, ...]:
        """What uses a project outside the engine."""
        kept = [use for each in self._kept_in for use in each.uses_of(name)]
        return (*kept, *self._registry.uses_of(name, wall_time()))

    async def _kept(self, event: ProjectAdded | ProjectChanged | ProjectStorageLimited) -> ProjectKept:
        """What a project is once it is durable; raises what the core refuses."""
        answer = await self._answer(event)
        assert isinstance(answer, ProjectKept)
        return answer

    async def _answer(self, event: ProjectAdded | ProjectChanged | ProjectStorageLimited | ProjectRemoved) -> Answer:
        """What the core says; a caller who goes away waits for it, so that locks are held and the entry is written."""
        return await completed(answer_to(self._engine, event))

    async def _note(self, entry: AuditEntry) -> None:
        await completed(self._registry.note((entry,)))
