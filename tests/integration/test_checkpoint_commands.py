"""What jobs have saved, as people list, fetch, pin and remove it, with a real coordinator, agent, depot and console."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path

from muster.cli.exit_codes import ExitCode
from muster.cli.local.fleet import client_of
from muster.client.client import Client
from muster.client.endpoint import Login
from muster.domain.data.checkpoint import JobCheckpoint
from muster.domain.jobs.job import JobSpec, Role
from tests.integration.consoles import console
from tests.integration.depots import depot, uploaded
from tests.integration.output_fleets import LIMIT, muster, place
from tests.integration.programs import agent, coordinator

__all__ = ["place"]

SAVES_TWICE = """
    cd "$MUSTER_CHECKPOINT_DIR"
    for step in 1 2; do
        mkdir s$step.tmp; echo "$step of $MUSTER_RANK" > s$step.tmp/state; touch .s$step.finished; mv s$step.tmp s$step
    done
    mkdir s3; echo x > s3/state; [ $MUSTER_RANK = 0 ] || ln -s state s3/link
"""


@asynccontextmanager
async def saved(place: Path) -> AsyncIterator[tuple[Login, Client, str]]:
    """A fleet in which a job of two ranks has saved `s1` and `s2`, and its first rank alone `s3`."""
    role = Role(count=2, command=("/bin/sh", "-c", SAVES_TWICE), checkpoint=JobCheckpoint(keep=2))
    async with (
        asyncio.timeout(LIMIT),
        coordinator(place) as login,
        client_of(login) as client,
        depot(place / "coordinator"),
        agent(place, login),
    ):
        (place / "folder").mkdir()
        await uploaded(client, place / "folder")  # from then on the coordinator knows its depot
        job = (await client.jobs.submit(JobSpec(name="saves", roles=(role,)), queue_anyway=True)).id
        await client.jobs.wait(job)
        yield login, client, job


async def test_they_are_listed_pinned_and_removed_over_http(place: Path) -> None:
    async with saved(place) as (login, _, job), console(login.address) as served, served.http(login.token) as http:
        found = (await http.get(f"/v1/jobs/{job}/checkpoints")).json()
        assert [(each["name"], each["parts"]) for each in found["checkpoints"]] == [("s3", 1), ("s2", 2), ("s1", 2)]
        one = f"/v1/jobs/{job}/checkpoints/1/s1"
        assert (await http.post(f"{one}/pin")).json()["pinned"]
        assert not (await http.post(f"{one}/unpin")).json()["pinned"]
        assert (await http.delete(one)).status_code == HTTPStatus.NO_CONTENT
        assert (await http.delete(one)).status_code == HTTPStatus.NOT_FOUND
        left = (await http.get(f"/v1/jobs/{job}/checkpoints")).json()["checkpoints"]
        assert [each["name"] for each in left] == ["s3", "s2"]


async def test_they_are_listed_fetched_pinned_and_removed(place: Path) -> None:
    async with saved(place) as (login, client, job):
        code, listed, notes = await muster(login, place, "checkpoints", job)
        assert code == ExitCode.SUCCESS
        rows = [line.split() for line in listed.splitlines()]
        assert [(row[0], row[1], " ".join(row[-3:])) for row in rows[1:]] == [
            ("s3", "1", "lacks rank 1"),
            ("s2", "1", "14 B whole"),
            ("s1", "1", "14 B whole"),
        ]
        assert "rank 1: its newest one is not stored: s3: s3/link is a link" in notes

        code, said, notes = await muster(login, place, "checkpoints", "get", job)
        assert not notes, notes
        assert said == f"s2 of attempt 1: 2 files, 14 B: 2 fetched; they are in saves-{job}-checkpoints\n"
        parts = place / f"saves-{job}-checkpoints"
        assert [(parts / str(rank) / "s2" / "state").read_text() for rank in range(2)] == ["2 of 0\n", "2 of 1\n"]

        code, said, _ = await muster(login, place, "checkpoints", "pin", job, "s1", "-o", "json")
        assert [json.loads(said)[key] for key in ("name", "pinned")] == ["s1", True]
        code, said, _ = await muster(login, place, "checkpoints", "unpin", job, "s1")
        assert said == "checkpoint s1 of attempt 1 is not pinned any more\n"
        code, said, _ = await muster(login, place, "checkpoints", "remove", job, "s1")
        assert said == "checkpoint s1 of attempt 1 is removed\n"
        code, _, said = await muster(login, place, "checkpoints", "get", job, "s1")
        assert (code, f"job {job} has no checkpoint s1" in said) == (ExitCode.UNKNOWN_NAME, True), said
        left = (await client.checkpoints.of(job)).checkpoints
        again = await client.checkpoints.get(job, parts, ranks=[1])
        assert [each.name for each in left if each.whole] == ["s2"]
        assert (again.files, again.fetched) == (1, 0)
