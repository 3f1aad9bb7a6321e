"""Removing projects: what keeps one, who is faster, and what is left for those who come afterwards."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

import pytest

from coordinator.engine.engine import Engine
from coordinator.logins.desk import LoginDesk
from coordinator.logins.person import Person
from coordinator.logins.settings import GroupGrant, LoginSettings
from coordinator.service.archive import StoredPast
from coordinator.service.jobs import JobFilter, JobOperations
from coordinator.service.known_projects import KnownProjects
from coordinator.service.operations import Operations
from coordinator.service.projects import ProjectOperations
from coordinator.service.secrets import SecretOperations
from coordinator.service.stories import StoryWish
from coordinator.service.submitting import Submission
from coordinator.service.trust.accounts import AccountOperations
from coordinator.service.trust.logins import LoginOperations
from coordinator.service.trust.sessions import ConsoleKnown
from coordinator.service.trust.tokens import TokenOperations, TokenWish
from coordinator.store.records.memory import MemoryStore
from coordinator.trust.caller import STRANGER
from muster.domain.errors import ConflictError, ExhaustedError, MusterError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import Access, AccountKind, Permissions, Project
from muster.domain.ids import JobId
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import spec
from tests.unit.coordinator.engines import (
    StoreThatIsFull,
    StoreThatWaits,
    all_else_has_had_its_turn,
    engine_on,
    working,
)
from tests.unit.coordinator.service.callers import Trusted, of_all, person, secrets_in_memory
from tests.unit.coordinator.service.job_operations import job_operations
from tests.unit.coordinator.trust.memory_trust import PROJECTS

ADMIN = of_all(Access.ADMIN)
SERVICE = AccountKind.SERVICE
NO_RED = "there is no project 'red'"


class ConfirmedDesk:
    """A login that its person has confirmed, whose one group gives access to the project red."""

    settings = LoginSettings(
        issuer="https://id.example.org",
        client_id="muster",
        grants=(GroupGrant(group="team", project="red", access=Access.MEMBER),),
    )

    async def finish(self, shown: str, now: datetime) -> Person:
        del shown, now
        return Person(identity="id", name="bea", groups=frozenset({"team"}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """A coordinator without nodes that has the projects `default`, `red` and `blue`."""

    trusted: Trusted
    engine: Engine
    projects: ProjectOperations
    accounts: AccountOperations
    tokens: TokenOperations
    secrets: SecretOperations
    jobs: JobOperations
    logins: LoginOperations

    async def job(self, key: str = "") -> JobId:
        """A job of the project red that waits."""
        submission = Submission(spec=spec(1, project="red"), key=key, queue_anyway=True)
        return (await self.jobs.submit(ADMIN, submission)).id

    async def ended_job(self, key: str = "") -> JobId:
        """A job of the project red that has ended."""
        return (await self.jobs.stop(ADMIN, await self.job(key))).id

    async def token(self, *, ttl: timedelta | None = None) -> str:
        """The id of a token of the account `ci` that counts in the project red alone."""
        return (await self.tokens.create(ADMIN, TokenWish(account="ci", projects=("red",), ttl=ttl)))[1].id


@asynccontextmanager
async def fleet(store: MemoryStore | None = None) -> AsyncIterator[Fleet]:
    store = store or MemoryStore()
    engine = engine_on(store)
    trusted = Trusted(projects=KnownProjects(engine))
    operations, secrets = trusted.operations, secrets_in_memory(trusted.registry.projects)
    async with working(engine):
        made = Fleet(
            trusted=trusted,
            engine=engine,
            projects=ProjectOperations(operations, engine, trusted.registry, [secrets], open_for_all=False),
            accounts=AccountOperations(operations, trusted.registry),
            tokens=TokenOperations(operations, trusted.registry),
            secrets=SecretOperations(operations, secrets),
            jobs=job_operations(engine, trusted, StoredPast(store)),
            logins=LoginOperations(operations, trusted.registry, cast("LoginDesk", ConfirmedDesk()), ConsoleKnown()),
        )
        await made.accounts.add(ADMIN, "ci", SERVICE, {})
        yield made


async def begun_removal(fleet: Fleet, store: StoreThatWaits, tasks: asyncio.TaskGroup) -> "asyncio.Task[Project]":
    """A removal of the project red that has looked at what uses it, and waits until the core has stored something."""
    tasks.create_task(fleet.projects.add(ADMIN, "green"))
    await asyncio.to_thread(store.entered.wait, 60)
    removing = tasks.create_task(fleet.projects.remove(ADMIN, "red"))
    await all_else_has_had_its_turn()
    assert "red" in fleet.engine.projects
    return removing


async def entries(fleet: Fleet) -> list[tuple[str, str, str, str]]:
    """What the audit log says about removals."""
    return [entry for entry in await fleet.trusted.told() if entry[1] == "projects.remove"]


async def test_a_project_that_nothing_uses_is_removed_by_an_admin_and_that_is_written_down() -> None:
    async with fleet() as f:
        opened = await f.projects.allow(ADMIN, "red", Permissions(any_user=True))
        gone = await f.projects.remove(ADMIN, "red")

        assert gone == opened
        assert [each.name for each in await f.projects.list(ADMIN)] == ["blue", "default"]
        with pytest.raises(UnknownNameError, match=NO_RED):
            await f.projects.remove(ADMIN, "red")
        assert await entries(f) == [
            ("root", "projects.remove", "red", "ok"),
            ("root", "projects.remove", "red", "not_found"),
        ]


async def test_only_an_admin_of_all_projects_removes_one() -> None:
    async with fleet() as f:
        for caller in (person(red=Access.ADMIN), of_all(Access.OPERATOR)):
            with pytest.raises(PermissionDeniedError, match="it needs admin access to every project"):
                await f.projects.remove(caller, "red")

        assert "red" in f.engine.projects
        assert {entry[3] for entry in await entries(f)} == {"needs admin (everywhere)"}


async def test_each_thing_that_uses_a_project_keeps_it_until_what_the_refusal_says_is_done() -> None:
    async with fleet() as f:
        job, token = await f.job(), await f.token()
        await f.secrets.set(ADMIN, "red", "db", {"user": b"u"})
        await f.accounts.add(ADMIN, "ada", AccountKind.USER, {"red": Access.VIEWER, "blue": Access.MEMBER})

        async def refusal() -> list[str]:
            with pytest.raises(ConflictError, match=r"^project red is still in use, so it stays:\n") as refused:
                await f.projects.remove(ADMIN, "red")
            return str(refused.value).splitlines()[1:]

        lines = [
            f"  1 job has not ended ({job}): `muster stop {job}`",
            "  1 secret is kept in it (db): `muster secrets remove db --project red`",
            "  1 account has access to it (ada): `muster projects revoke red ada`",
            f"  1 token is made for it ({token}): `muster tokens revoke {token}`",
        ]
        assert await refusal() == lines
        await f.jobs.stop(ADMIN, job)
        assert await refusal() == lines[1:]
        await f.secrets.remove(ADMIN, "red", "db")
        assert await refusal() == lines[2:]
        await f.accounts.grant(ADMIN, "ada", "red", None)
        assert await refusal() == lines[3:]
        await f.tokens.revoke(ADMIN, token)
        assert (await f.projects.remove(ADMIN, "red")).name == "red"
        assert sorted(result for *_, result in await entries(f)) == ["failed_precondition"] * 4 + ["ok"]


async def test_access_to_all_projects_and_tokens_that_have_ended_keep_no_project() -> None:
    async with fleet() as f:
        await f.accounts.grant(ADMIN, "ci", "", Access.VIEWER)
        await f.tokens.create(ADMIN, TokenWish(account="ci"))
        await f.tokens.revoke(ADMIN, await f.token())
        await f.token(ttl=timedelta(microseconds=1))

        assert (await f.projects.remove(ADMIN, "red")).name == "red"


async def test_whoever_gives_something_of_a_project_while_it_is_removed_is_told_that_it_is_not_there() -> None:
    store = StoreThatWaits()
    async with fleet(store) as f, asyncio.TaskGroup() as tasks:
        removing = await begun_removal(f, store, tasks)

        def late(giving: Awaitable[object], why: str = NO_RED) -> asyncio.Task[None]:
            async def refused() -> None:
                with pytest.raises(MusterError, match=why):
                    await giving

            return tasks.create_task(refused())

        waiting = [
            late(f.accounts.grant(ADMIN, "ci", "red", Access.MEMBER)),
            late(f.accounts.add(ADMIN, "ada", AccountKind.USER, {"red": Access.VIEWER})),
            late(f.token()),
            late(f.secrets.set(ADMIN, "red", "db", {"user": b"u"})),
            late(f.job()),
            late(f.logins.finish(STRANGER, "shown"), "that gives you no access here: your groups there are team"),
        ]
        await all_else_has_had_its_turn()
        store.let_go.set()

        assert (await removing).name == "red"
        await asyncio.gather(*waiting)
        assert list(f.trusted.registry.accounts) == ["ci"]


async def test_what_was_given_before_the_removal_began_keeps_the_project() -> None:
    async with fleet() as f:
        async with asyncio.TaskGroup() as tasks:
            giving = tasks.create_task(f.secrets.set(ADMIN, "red", "db", {"user": b"u"}))
            await all_else_has_had_its_turn()
            with pytest.raises(ConflictError, match=r"1 secret is kept in it \(db\)"):
                await f.projects.remove(ADMIN, "red")

        assert giving.result().name == "db"


async def test_of_a_submit_and_a_removal_exactly_one_succeeds() -> None:
    for removal_first in (False, True):
        async with fleet() as f:
            calls: list[Awaitable[object]] = [f.job(), f.projects.remove(ADMIN, "red")]
            results = await asyncio.gather(*(reversed(calls) if removal_first else calls), return_exceptions=True)

            errors = [each for each in results if isinstance(each, Exception)]
            assert len(errors) == 1
            submitted = await f.jobs.list(ADMIN, JobFilter())
            assert ("red" in f.engine.projects) == (len(submitted.jobs) == 1)
            assert isinstance(errors[0], ConflictError if submitted.jobs else UnknownNameError)


async def test_a_removal_whose_caller_has_gone_away_goes_on_and_lets_nothing_in_between() -> None:
    store = StoreThatWaits()
    async with fleet(store) as f, asyncio.TaskGroup() as tasks:
        removing = await begun_removal(f, store, tasks)
        removing.cancel()
        granting = asyncio.create_task(f.accounts.grant(ADMIN, "ci", "red", Access.MEMBER))
        await all_else_has_had_its_turn()
        assert not granting.done()
        store.let_go.set()

        with pytest.raises(UnknownNameError, match=NO_RED):
            await granting
        await asyncio.wait([removing])
        assert removing.cancelled()
        assert await entries(f) == [("root", "projects.remove", "red", "ok")]


async def test_a_removal_that_cannot_be_stored_has_not_happened() -> None:
    store = StoreThatIsFull()
    async with fleet(store) as f:
        with pytest.raises(ExhaustedError, match="the disk is full"):
            await f.projects.remove(ADMIN, "red")

        assert "red" in f.engine.projects
        assert (await f.accounts.grant(ADMIN, "ci", "red", Access.MEMBER)).grants == {"red": Access.MEMBER}


async def test_ended_jobs_of_a_removed_project_are_seen_and_deleted_by_those_who_see_all_projects() -> None:
    async with fleet() as f:
        job = await f.ended_job()
        await f.projects.remove(ADMIN, "red")

        viewer, other = of_all(Access.VIEWER, "eve"), person(blue=Access.ADMIN)
        assert (await f.jobs.get(viewer, job)).id == job
        assert [view.id async for view in f.jobs.watch(viewer, job)] == [job]
        assert {event.job async for page in f.jobs.events(viewer, job, StoryWish()) for event in page} == {job}
        assert (await f.jobs.why(viewer, job)).phase is JobPhase.STOPPED
        listed = await f.jobs.list(viewer, JobFilter(projects=frozenset({"red"})))
        assert [view.id for view in listed.jobs] == [job]
        with pytest.raises(PermissionDeniedError):
            await f.jobs.delete(viewer, job)
        with pytest.raises(UnknownNameError, match=f"there is no job '{job}'"):
            await f.jobs.get(other, job)
        with pytest.raises(UnknownNameError, match=NO_RED):
            await f.job()
        assert await f.jobs.delete(ADMIN, job) == job


async def test_a_new_project_of_an_old_name_has_nothing_of_the_old_one() -> None:
    async with fleet() as f:
        await f.projects.allow(ADMIN, "red", Permissions(any_user=True))
        job = await f.ended_job(key="k")
        await f.projects.remove(ADMIN, "red")

        with pytest.raises(ConflictError, match=f"1 job of it is still kept \\({job}\\): `muster delete {job}`"):
            await f.projects.add(ADMIN, "red")
        await f.jobs.delete(ADMIN, job)
        made = await f.projects.add(ADMIN, "red")

        assert made.permissions == Permissions()
        assert await f.secrets.list(ADMIN, "red") == []
        assert (await f.jobs.list(person(red=Access.VIEWER), JobFilter())).jobs == []
        assert await f.job(key="k") != job


async def test_what_outlived_its_project_is_taken_away_before_there_is_another_of_its_name() -> None:
    engine, trusted, secrets = engine_on(MemoryStore()), Trusted(), secrets_in_memory(PROJECTS)
    operations = Operations(KnownProjects(engine), trusted.audit)
    projects = ProjectOperations(operations, engine, trusted.registry, [secrets], open_for_all=False)
    async with working(engine):
        await projects.remove(ADMIN, "red")
        # As in a database that was mended by hand: registry and secrets still believe in the project.
        await AccountOperations(operations, trusted.registry).add(
            ADMIN, "ada", AccountKind.USER, {"red": Access.MEMBER}
        )
        await SecretOperations(trusted.operations, secrets).set(ADMIN, "red", "db", {"user": b"u"})

        with pytest.raises(
            ConflictError, match=r"1 secret is kept in it \(db\).*\n.*1 account has access to it \(ada\)"
        ):
            await projects.add(ADMIN, "red")
        await AccountOperations(operations, trusted.registry).grant(ADMIN, "ada", "red", None)
        await SecretOperations(operations, secrets).remove(ADMIN, "red", "db")
        assert (await projects.add(ADMIN, "red")).name == "red"
