"""Volumes that stay on a node, from one job to the next, with a real coordinator, agent, command line and console."""

import asyncio
import json
import signal
from http import HTTPStatus
from pathlib import Path

import pytest

from muster.cli.exit_codes import ExitCode
from muster.cli.local.fleet import client_of
from muster.client.client import Client
from muster.domain.data.volume import KeptVolumeView, Volume, VolumeKeep
from muster.domain.errors import ConflictError, UnavailableError
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase
from tests.integration.consoles import console
from tests.integration.output_fleets import LIMIT, muster, place
from tests.integration.programs import agent, coordinator

__all__ = ["place"]

ADDS = 'cat "$MUSTER_VOLUME_MODELS/runs" 2> /dev/null; echo "$MUSTER_JOB_NAME" >> "$MUSTER_VOLUME_MODELS/runs"'
USES = f"{ADDS}; echo there; exec sleep 600"


def job(name: str, script: str) -> JobSpec:
    volume = Volume(name="models", size=2**20, keep=VolumeKeep.NODE)
    return JobSpec(name=name, roles=(Role(command=("/bin/sh", "-c", script), volumes=(volume,)),))


async def listed(client: Client, wanted: list[list[str]]) -> tuple[KeptVolumeView, ...]:
    """The volumes, once their users are these jobs; who calls this does not wait for ever."""
    while True:
        found = await client.volumes.list()
        if [list(each.jobs) for each in found] == wanted:
            return found


async def removed(client: Client) -> None:
    """Remove it, once the execution that used it is cleared away; who calls this does not wait for ever."""
    while True:
        try:
            await client.volumes.remove("alone", "default", "models")
        except ConflictError:
            continue
        return


async def test_what_a_job_leaves_in_one_is_there_for_the_next_until_it_is_removed(place: Path) -> None:
    disk = place / "disk"
    async with asyncio.timeout(LIMIT), coordinator(place) as login, client_of(login) as client:
        async with agent(place, login, "--volumes-dir", str(disk), ending=signal.SIGKILL):
            first = await client.jobs.submit(job("first", ADDS), queue_anyway=True)
            assert (await client.jobs.wait(first.id)).phase is JobPhase.SUCCEEDED
            [found] = await listed(client, [[]])
            assert (found.node, found.project, found.name, found.connected) == ("alone", "default", "models", True)
            second = await client.jobs.submit(job("second", USES), queue_anyway=True)
            printed = []
            async for line in client.jobs.logs(second.id, follow=True):
                printed.append(line.text)
                if line.text == b"there":
                    break
            assert printed == [b"first", b"there"]
            await listed(client, [[second.id]])
            code, _, said = await muster(login, place, "volumes", "remove", "alone", "default", "models", "--yes")
            assert (code, f"is in use by {second.id}" in said) == (ExitCode.REFUSED, True), said
        with pytest.raises((ConflictError, UnavailableError)):
            await client.volumes.remove("alone", "default", "models")
        async with (
            agent(place, login, "--volumes-dir", str(disk)),
            console(login.address) as served,
            served.http(login.token) as http,
        ):
            await client.jobs.stop(second.id)
            await client.jobs.wait(second.id)
            [after] = (await http.get("/v1/volumes", params={"node": "alone"})).json()["items"]
            assert (after["name"], after["jobs"]) == ("models", [])
            [data] = disk.glob("kept/default/models/data")
            assert (data / "runs").read_text() == "first\nsecond\n"
            await removed(client)
            assert not data.exists()
            gone = await http.delete("/v1/nodes/alone/volumes/default/models")
            assert gone.status_code == HTTPStatus.NOT_FOUND
            code, said, _ = await muster(login, place, "volumes", "-o", "json")
            assert (code, json.loads(said)) == (ExitCode.SUCCESS, [])
