"""Projects go, over the network and on a disk: what keeps them, who still sees their jobs, and that they stay away."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from muster.cli.exit_codes import ExitCode
from muster.client.sync.client import SyncClient
from muster.domain.errors import ConflictError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import Access, Permissions
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec
from muster.rpc.channel import Credentials
from tests.integration.jobs import shell
from tests.integration.secured import Secured, muster, secured
from tests.integration.terminal import typed

JOB = replace(shell("true"), project="vision")
SUBMITS = 20


async def ended_job(fleet: Secured, spec: JobSpec = JOB) -> JobId:
    """A job that waited, was stopped and is kept."""
    async with fleet.client() as admin:
        job = await admin.jobs.submit(spec, queue_anyway=True)
        return (await admin.jobs.stop(job.id)).id


async def test_a_project_in_use_stays_and_each_thing_that_uses_it_is_told(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        await fleet.user("ada", {"vision": Access.MEMBER})
        _, token = await admin.tokens.create("ada", projects=("vision",))
        await admin.secrets.set("wandb", {"key": b"0123"}, project="vision")
        job = (await admin.jobs.submit(JOB, queue_anyway=True)).id

        with pytest.raises(ConflictError) as refused:
            await admin.projects.remove("vision")

        assert str(refused.value).splitlines() == [
            "project vision is still in use, so it stays:",
            f"  1 job has not ended ({job}): `muster stop {job}`",
            "  1 secret is kept in it (wandb): `muster secrets remove wandb --project vision`",
            "  1 account has access to it (ada): `muster projects revoke vision ada`",
            f"  1 token is made for it ({token.id}): `muster tokens revoke {token.id}`",
        ]
        commands = [line.split("`")[1].split()[1:] for line in str(refused.value).splitlines()[1:]]
        for words in commands:
            assert (await muster(fleet, fleet.admin_token, *words)).exit_code == 0
        assert (await admin.projects.remove("vision")).name == "vision"
        assert [project.name for project in await admin.projects.list()] == ["default"]
        told = [(entry.target, entry.result) for entry in await admin.audit.list() if entry.what == "projects.remove"]
        assert sorted(told) == [("vision", "failed_precondition"), ("vision", "ok")]


async def test_only_an_admin_of_everything_removes_a_project(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        ada = await fleet.user("ada", {"vision": Access.ADMIN})
        async with fleet.client(ada) as client:
            with pytest.raises(PermissionDeniedError, match="it needs admin access to every project"):
                await client.projects.remove("vision")
        with pytest.raises(ConflictError, match="the project default stays"):
            await admin.projects.remove("default")
        with pytest.raises(UnknownNameError, match="there is no project 'sound'"):
            await admin.projects.remove("sound")


async def test_jobs_that_have_ended_are_seen_by_admins_also_after_a_restart_and_keep_the_name(tmp_path: Path) -> None:
    async with secured(tmp_path / "fleet") as fleet, fleet.client() as admin:
        await admin.projects.add("vision")
        await admin.projects.allow("vision", Permissions(any_user=True))
        job = await ended_job(fleet)
        await admin.projects.remove("vision")
        with pytest.raises(UnknownNameError, match="there is no project 'vision'"):
            await admin.jobs.submit(JOB, queue_anyway=True)

    async with secured(tmp_path / "fleet") as fleet, fleet.client() as admin:
        assert [project.name for project in await admin.projects.list()] == ["default"]
        assert (await admin.jobs.get(job)).id == job
        assert [each.id async for each in admin.jobs.list(projects=("vision",))] == [job]
        assert [event.job async for event in admin.jobs.events(job)] != []
        assert [line async for line in admin.jobs.logs(job)] == []
        assert (await admin.jobs.why(job)).phase.ended
        async with fleet.client(await fleet.user("bea", {"default": Access.ADMIN})) as bea:
            with pytest.raises(UnknownNameError, match=f"there is no job '{job}'"):
                await bea.jobs.get(job)
        with pytest.raises(ConflictError, match=f"1 job of it is still kept \\({job}\\)"):
            await admin.projects.add("vision")
        assert (await muster(fleet, fleet.admin_token, "delete", "--all", "--project", "vision", "-y")).exit_code == 0
        assert (await admin.projects.add("vision")).permissions == Permissions()


async def test_of_many_submits_during_a_removal_none_is_left_in_a_project_that_is_gone(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        await admin.projects.add("vision")
        submits = [admin.jobs.submit(JOB, queue_anyway=True) for _ in range(SUBMITS)]
        half = SUBMITS // 2
        results = await asyncio.gather(
            *submits[:half], admin.projects.remove("vision"), *submits[half:], return_exceptions=True
        )

        removed = not isinstance(results.pop(half), ConflictError)
        accepted = [each for each in results if not isinstance(each, UnknownNameError)]
        assert not any(isinstance(each, BaseException) for each in accepted)
        assert len(accepted) == (0 if removed else SUBMITS)
        assert ("vision" in {project.name for project in await admin.projects.list()}) is not removed


async def test_the_synchronous_client_removes_projects_too(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        await admin.projects.add("vision")

        def remove() -> str:
            shown = Credentials(authority=fleet.authority.certificate, token=fleet.admin_token)
            with SyncClient(fleet.doors.clients, shown) as client:
                return client.projects.remove("vision").name

        assert await asyncio.to_thread(remove) == "vision"
        assert [project.name for project in await admin.projects.list()] == ["default"]


async def test_the_command_line_asks_first_and_says_what_goes(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        await admin.projects.add("vision")
        await admin.projects.allow("vision", Permissions(any_user=True))

        alone = await muster(fleet, fleet.admin_token, "projects", "remove", "vision")
        assert alone.exit_code == ExitCode.USAGE
        assert "nobody is there to be asked whether to remove project vision; say --yes" in alone.stderr
        kept = await typed(fleet, "projects", "remove", "vision", answers=b"n\n", code=1)
        assert b"project vision goes, which is opened for any user" in kept
        assert b"only whoever has access to every project still sees them" in kept
        assert "vision" in {project.name for project in await admin.projects.list()}
        gone = await typed(fleet, "projects", "remove", "vision", answers=b"y\n")
        assert b"Remove project vision? [y/N]: " in gone
        assert b"project vision is removed" in gone
        absent = await muster(fleet, fleet.admin_token, "projects", "remove", "vision", "--yes")
        assert absent.exit_code == ExitCode.UNKNOWN_NAME


async def test_the_command_line_tells_programs_what_is_gone_and_people_what_keeps_it(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        await admin.projects.add("vision")
        await admin.projects.allow("vision", Permissions(any_user=True))
        shown = await muster(fleet, fleet.admin_token, "projects", "show", "vision", "-o", "json")
        await fleet.user("ada", {"vision": Access.MEMBER})

        refused = await muster(fleet, fleet.admin_token, "projects", "remove", "vision", "-y")
        assert refused.exit_code == ExitCode.REFUSED
        assert "\n  1 account has access to it (ada): `muster projects revoke vision ada`\n" in refused.stderr
        await admin.accounts.grant("ada", "vision", None)
        gone = await muster(fleet, fleet.admin_token, "projects", "remove", "vision", "-y", "-o", "json")
        assert json.loads(gone.stdout) == json.loads(shown.stdout)
