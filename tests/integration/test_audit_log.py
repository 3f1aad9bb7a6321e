"""The audit log of a coordinator: orders are in it before they are confirmed, and no trouble with it ends anything."""

import json
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from muster.client.client import Client
from muster.client.endpoint import Login
from muster.domain.errors import MusterError, UnknownNameError
from muster.domain.fleet.audit_chain import ChainCheck, entry_of, line_of
from muster.domain.jobs.job import JobSpec, Role
from muster.rpc.channel import Credentials
from tests.integration.programs import coordinator_program
from tests.integration.secured import muster, secured

JOB = JobSpec(name="job", roles=(Role(command=("true",)),))
ELSEWHERE = JobSpec(name="job", roles=(Role(command=("true",)),), project="nowhere")
ANYWHERE = "127.0.0.1:0"


def client(login: Login, token: str | None = None) -> Client:
    return Client(login.address, Credentials(token=token or login.token))


def fill(file: Path) -> None:
    """Take all the room that there is."""
    with suppress(OSError), file.open("wb", buffering=0) as ballast:
        while True:
            ballast.write(bytes(4096))


async def test_orders_and_their_export_outlive_a_coordinator_that_is_killed_right_after_it_confirmed_them(
    tmp_path: Path,
) -> None:
    file, jobs = tmp_path / "audit.jsonl", []
    for _ in range(2):
        async with coordinator_program(tmp_path, ANYWHERE, "--audit-file", str(file)) as running:
            async with client(running.login) as user:
                jobs.append((await user.jobs.submit(JOB, queue_anyway=True)).id)
                await user.jobs.stop(jobs[-1])
            await running.killed()
    async with coordinator_program(tmp_path, ANYWHERE, "--audit-file", str(file)) as running:
        async with client(running.login) as user:
            entries, held = await user.audit.list(), await user.audit.verify()
        orders = [(each.what, each.target, each.result) for each in entries if each.what.startswith("jobs.")]
        assert orders == [(f"jobs.{what}", job, "ok") for job in jobs for what in ("submit", "stop")]
        while not file.exists() or len(lines := file.read_text().splitlines()) < held.count:
            async with client(running.login) as user:
                await user.audit.list()
    check = ChainCheck()
    assert [check.take(entry_of(line)) for line in lines] == [None] * held.count
    assert check.last == held.last


async def test_a_database_that_is_locked_for_long_and_a_stranger_with_a_bad_token_end_nothing(tmp_path: Path) -> None:
    async with coordinator_program(tmp_path) as running:
        database = tmp_path / "coordinator" / "coordinator.db"
        with closing(sqlite3.connect(database, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            async with client(running.login, "0" * 64) as stranger:
                with pytest.raises(MusterError):
                    await stranger.projects.list()
            await running.says(b"the audit log cannot be written")
            async with client(running.login) as user:
                assert [job async for job in user.jobs.list()] == []
        await running.says(b"the audit log is written again")
        async with client(running.login) as user:
            assert [each.result for each in await user.audit.list()][-1:] == ["malformed token"]


async def test_a_disk_that_is_full_and_a_refused_job_end_nothing(tmp_path: Path) -> None:
    unshare, mount = shutil.which("unshare"), 'mount -t tmpfs -o size=24m none "$0" || exit 77; exec "$@"'
    if unshare is None:
        pytest.skip("needs unshare, for a small file system of its own")
    before = (unshare, "--map-root-user", "--mount", "sh", "-c", mount, str(tmp_path))
    async with coordinator_program(tmp_path, before=before) as running:
        ballast = Path(f"/proc/{running.program.pid}/root") / tmp_path.relative_to("/") / "ballast"
        fill(ballast)
        async with client(running.login) as user:
            for _ in range(3):
                with pytest.raises(UnknownNameError):
                    await user.jobs.submit(ELSEWHERE)
            await running.says(b"the audit log cannot be written")
            ballast.unlink()
            await running.says(b"the audit log is written again")
            refused = [each.result for each in await user.audit.list() if each.what == "jobs.submit"]
        assert refused == ["not found among what the caller may see"] * 3


async def test_people_page_through_the_audit_log_and_verify_it(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        await fleet.user("ada", {})
        for _ in range(3):
            assert (await muster(fleet, fleet.admin_token, "projects", "grant", "*", "ada")).exit_code == 0
        newest = await muster(fleet, fleet.admin_token, "audit", "-n", "2", "-o", "json")
        numbers = [each["number"] for each in json.loads(newest.stdout)]
        assert len(numbers) == 2
        assert f"--page {numbers[0]}" in newest.stderr
        older = await muster(fleet, fleet.admin_token, "audit", "-n", "2", "--page", str(numbers[0]), "-o", "json")
        assert [each["number"] for each in json.loads(older.stdout)] == [numbers[0] - 2, numbers[0] - 1]
        oldest = await muster(fleet, fleet.admin_token, "audit", "-n", "1", "--oldest", "-o", "json")
        assert [each["number"] for each in json.loads(oldest.stdout)] == [1]
        assert (await muster(fleet, fleet.admin_token, "audit", "--until", "1h", "-o", "json")).stdout == "[]\n"

        held = await muster(fleet, fleet.admin_token, "audit", "verify")
        assert (held.exit_code, held.stdout) == (0, f"{numbers[1]} entries hold, from 1 to {numbers[1]}\n")
        noted = held.stderr.split()[-1]
        assert (await muster(fleet, fleet.admin_token, "audit", "verify", "--expect", noted)).exit_code == 0
        other = f"{numbers[1]}:{'0' * 64}"
        rewritten = await muster(fleet, fleet.admin_token, "audit", "verify", "--expect", other)
        assert (rewritten.exit_code, rewritten.stdout.split(":")[0]) == (
            1,
            f"the chain does not hold at entry {numbers[1]}",
        )


async def test_a_file_is_verified_without_a_coordinator(tmp_path: Path) -> None:
    async with secured(tmp_path) as fleet:
        file, changed = tmp_path / "audit.jsonl", tmp_path / "changed.jsonl"
        async with fleet.client() as admin:
            for name in ("red", "blue"):
                await admin.projects.add(name)
            entries = await admin.audit.list()
        file.write_text("".join(f"{line_of(each)}\n" for each in entries))
        changed.write_text(file.read_text().replace('"blue"', '"grey"'))
        held = await muster(fleet, "", "audit", "verify", str(file))
        broken = await muster(fleet, "", "audit", "verify", str(changed))
        assert held.stdout == f"{len(entries)} entries hold, from 1 to {len(entries)}\n"
        assert (broken.exit_code, broken.stdout.split(":")[0]) == (
            1,
            f"the chain does not hold at entry {len(entries)}",
        )
