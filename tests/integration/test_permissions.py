"""What the containers of a project may do is decided when a job is submitted, by what an admin has opened."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from muster.cli.program import program
from muster.client.endpoint import Login, keep_login
from muster.domain.errors import ConflictError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import Access, Permissions
from muster.domain.fleet.attach_permission import Attachers, AttachPermission
from muster.domain.jobs.job import JobSpec, Mount, Role, Security
from muster.domain.jobs.rules.filling_in import filled_in
from tests.integration.fleet import running_fleet
from tests.integration.secured import secured

OPENED = Permissions(capabilities=frozenset({"SYS_PTRACE"}), any_user=True, host_paths=("/data",), pids=100_000)


def job(**options: Any) -> JobSpec:
    role = replace(Role(image="img", command=("true",)), **options)
    return JobSpec(name="train", roles=(role,), project="vision")


WISHES = (
    job(user="root"),
    job(security=Security(image_user=True)),
    job(security=Security(capabilities=("SYS_PTRACE",))),
    job(security=Security(pids=100_000)),
    job(mounts=(Mount(source="/data/set", target="/in"),)),
)


async def test_what_is_not_opened_is_refused_and_audited(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        token = await fleet.user("ada", {"vision": Access.ADMIN})
        async with fleet.client(token) as ada:
            for wish in WISHES:
                for dry_run in (False, True):
                    with pytest.raises(PermissionDeniedError, match="project vision is not opened"):
                        await ada.jobs.submit(wish, queue_anyway=True, dry_run=dry_run)
            assert [each async for each in ada.jobs.list()] == []
        refused = [entry for entry in await admin.audit.list(who="ada") if entry.what == "jobs.submit"]
        assert len(refused) == 2 * len(WISHES)
        assert "role worker, user: root" in refused[0].result


async def test_what_an_admin_has_opened_is_taken_until_he_closes_it(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        token = await fleet.user("ada", {"vision": Access.MEMBER})
        async with fleet.client(token) as ada:
            assert (await admin.projects.allow("vision", OPENED)).permissions == OPENED
            (seen,) = [project for project in await ada.projects.list() if project.name == "vision"]
            assert seen.permissions == OPENED
            taken = [(await ada.jobs.submit(wish, queue_anyway=True)).id for wish in WISHES]
            with pytest.raises(PermissionDeniedError, match="--capability SYS_ADMIN"):
                await ada.jobs.submit(job(security=Security(capabilities=("SYS_ADMIN",))), queue_anyway=True)

            await admin.projects.allow("vision", Permissions(any_user=True))
            with pytest.raises(PermissionDeniedError, match="--host-path /data/set"):
                await ada.jobs.submit(WISHES[-1], queue_anyway=True)
            await ada.jobs.submit(WISHES[0], queue_anyway=True)
            assert {each.id async for each in ada.jobs.list()} >= set(taken)
            assert not any(each.phase.ended for each in [await ada.jobs.get(id_) for id_ in taken])
        changes = [entry.result for entry in await admin.audit.list() if entry.what == "projects.allow"]
        assert changes == [
            "ok, +SYS_PTRACE, +/data, +any-user, pids default -> 100000",
            "ok, -SYS_PTRACE, -/data, pids 100000 -> default",
        ]


async def test_nobody_but_an_admin_of_everything_opens_a_project(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet, fleet.client() as admin:
        token = await fleet.user("ada", {"vision": Access.ADMIN})
        async with fleet.client(token) as ada:
            with pytest.raises(PermissionDeniedError):
                await ada.projects.allow("vision", OPENED)
        with pytest.raises(UnknownNameError, match="no project 'sound'"):
            await admin.projects.allow("sound", OPENED)
        with pytest.raises(PermissionDeniedError):
            await admin.jobs.submit(WISHES[0], queue_anyway=True)


async def test_the_command_line_opens_shows_and_closes(tmp_path: Path) -> None:
    async with secured(tmp_path / "fleet") as fleet:
        home = tmp_path / "home"
        authority = fleet.authority.certificate.decode()
        keep_login(home, Login(address=fleet.doors.clients, authority=authority, token=fleet.admin_token))

        async def muster(*words: str) -> str:
            environment = {"MUSTER_HOME": str(home), "COLUMNS": "200"}
            asked = await asyncio.to_thread(CliRunner().invoke, program(words), words, env=environment)
            return asked.stdout if asked.exit_code == 0 else f"exit {asked.exit_code}"

        await muster("projects", "add", "vision")
        assert await muster("projects", "allow", "vision") == "vision: nothing beyond the default\n"
        opened = "vision: any user, BPF, SYS_PTRACE, mounts from /data, 99 processes\n"
        await muster(
            "projects", "allow", "vision", "--capability", "cap_sys_ptrace", "--any-user", "--host-path", "/data/"
        )
        assert await muster("projects", "allow", "vision", "--capability", "BPF", "--pids", "99") == opened
        listed = json.loads(await muster("projects", "list", "-o", "json"))
        assert listed[1]["permissions"]["capabilities"] == ["BPF", "SYS_PTRACE"]
        assert "any user, BPF" in await muster("projects", "list")
        shown = json.loads(await muster("projects", "show", "vision", "-o", "json"))
        assert shown == listed[1]
        assert "mounts from /data" in await muster("projects", "show", "vision")
        assert await muster("projects", "show", "sound") == "exit 4"
        assert await muster("projects", "allow", "vision", "--nothing") == "vision: nothing beyond the default\n"
        assert await muster("projects", "allow", "vision", "--capability", "EVERYTHING") == "exit 2"
        assert await muster("projects", "allow", "sound", "--privileged") == "exit 4"
        assert await muster("projects", "allow", "vision", "--host-path", "data") == "exit 2"


async def test_the_command_line_says_who_may_attach(tmp_path: Path) -> None:
    async with secured(tmp_path / "fleet") as fleet, fleet.client() as admin:
        home = tmp_path / "home"
        authority = fleet.authority.certificate.decode()
        keep_login(home, Login(address=fleet.doors.clients, authority=authority, token=fleet.admin_token))

        async def allow(*options: str) -> str:
            words = ("projects", "allow", "vision", *options)
            environment = {"MUSTER_HOME": str(home), "COLUMNS": "200"}
            asked = await asyncio.to_thread(CliRunner().invoke, program(words), words, env=environment)
            return asked.stdout.strip() if asked.exit_code == 0 else f"exit {asked.exit_code}"

        async def kept() -> AttachPermission:
            return (await admin.projects.get("vision")).permissions.attach

        await admin.projects.add("vision")
        assert await kept() == AttachPermission()
        assert await allow("--attach", "members", "--any-user") == "vision: any user, attaching by members"
        assert await allow("--no-files") == "vision: any user, attaching by members, no files when attached"
        assert await kept() == AttachPermission(who=Attachers.MEMBERS, files=False)
        assert await allow("--files", "--attach", "owner", "--no-connections", "--no-commands") == (
            "vision: any user, no commands when attached, no connections when attached"
        )
        assert await allow("--capability", "BPF", "--commands", "--connections") == "vision: any user, BPF"
        assert await allow("--attach", "nobody") == "vision: any user, BPF, no attaching"
        assert await allow("--nothing", "--no-commands") == "vision: no commands when attached"
        assert await kept() == AttachPermission(commands=False)
        assert await allow("--nothing") == "vision: nothing beyond the default"
        assert await allow("--attach", "everybody") == "exit 2"
        changes = [entry.result for entry in await admin.audit.list() if entry.what == "projects.allow"]
        assert changes[:2] == ["ok, +any-user, attach owner -> members", "ok, -files"]


async def test_on_ones_own_machine_everything_is_open(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet:
        with pytest.raises(ConflictError, match="open for everything"):
            await fleet.client.projects.allow("default", OPENED)
        wish = replace(job(user="root", security=Security(privileged=True)), project="default")
        assert (await fleet.client.jobs.submit(wish, queue_anyway=True)).spec == filled_in(wish)
