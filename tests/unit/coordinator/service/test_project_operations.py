"""Operations on projects: who sees them, who makes them, and what they are opened for."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from coordinator.engine.engine import Engine
from coordinator.service.known_projects import KnownProjects, make_default_project
from coordinator.service.projects import ProjectOperations
from coordinator.store.records.memory import MemoryStore
from muster.domain.errors import ConflictError, InvalidJobError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import OPEN, Access, Permissions
from tests.unit.coordinator.engines import engine_on, working
from tests.unit.coordinator.service.callers import Trusted, of_all, person, secrets_in_memory

ADMIN = of_all(Access.ADMIN)
Fleet = tuple[Trusted, Engine, ProjectOperations]


@asynccontextmanager
async def fleet(
    *projects: str, of_one_machine: bool = False
) -> AsyncIterator[tuple[Trusted, Engine, ProjectOperations]]:
    """A fleet with these projects, and its audit log from then on."""
    engine = engine_on(MemoryStore(), ())
    trusted = Trusted(projects=KnownProjects(engine))
    secrets = secrets_in_memory(trusted.registry.projects)
    async with working(engine):
        made = ProjectOperations(trusted.operations, engine, trusted.registry, [secrets], open_for_all=of_one_machine)
        for name in projects:
            await made.add(ADMIN, name)
        await trusted.audit.flush()
        trusted.store.entries.clear()
        yield trusted, engine, made


async def test_projects_are_listed_for_those_who_see_them_and_opened_by_admins() -> None:
    async with fleet("red", "blue") as (trusted, _, projects):
        seen = await projects.list(person(red=Access.VIEWER))
        opened = await projects.allow(ADMIN, "red", Permissions(privileged=True))
        with pytest.raises(PermissionDeniedError):
            await projects.allow(person(red=Access.ADMIN), "red", Permissions())

        assert [each.name for each in seen] == ["red"]
        assert opened.permissions.privileged
        assert (await trusted.told())[0] == ("root", "projects.allow", "red", "ok, +privileged")


async def test_a_project_that_one_may_not_look_at_is_as_if_it_were_not_there() -> None:
    async with fleet("red", "blue") as (_, _, projects):
        assert (await projects.get(person(red=Access.VIEWER), "red")).name == "red"
        with pytest.raises(UnknownNameError, match="there is no project 'blue'"):
            await projects.get(person(red=Access.VIEWER), "blue")


async def test_a_project_is_made_once_and_written_down() -> None:
    async with fleet() as (trusted, engine, projects):
        await projects.add(ADMIN, "red")
        with pytest.raises(ConflictError, match="there is a project red already"):
            await projects.add(ADMIN, "red")
        with pytest.raises(InvalidJobError, match="is no name for a project"):
            await projects.add(ADMIN, "Red")

        assert [each[1:] for each in await trusted.told()] == [
            ("projects.add", "red", "ok"),
            ("projects.add", "red", "failed_precondition"),
            ("projects.add", "Red", "invalid_argument"),
        ]
        assert list(KnownProjects(engine)) == ["red"]


async def test_what_is_not_there_is_not_opened() -> None:
    async with fleet() as (_, _, projects):
        with pytest.raises(UnknownNameError, match="there is no project 'red'"):
            await projects.allow(ADMIN, "red", Permissions())


async def test_projects_of_one_machine_are_open_for_everything() -> None:
    async with fleet("red", of_one_machine=True) as (_, _, projects):
        assert {each.permissions for each in await projects.list(ADMIN)} == {OPEN}
        with pytest.raises(ConflictError, match="there is nothing to allow"):
            await projects.allow(ADMIN, "red", Permissions())


async def test_every_fleet_has_the_default_project_and_it_is_made_once() -> None:
    async with fleet() as (_, engine, projects):
        await make_default_project(engine)
        [first] = await projects.list(ADMIN)
        await make_default_project(engine)

        assert first.name == "default"
        assert await projects.list(ADMIN) == [first]
