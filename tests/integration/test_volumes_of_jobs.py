"""Volumes from the job file to user code, with a real coordinator and a real agent."""

import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.cli.local.fleet import client_of
from muster.domain.data.volume import Volume
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase
from tests.integration.programs import agent, coordinator
from tests.integration.relays import until

WRITES = 'echo one > "$MUSTER_VOLUME_TMP_SPACE/a"; cat "$MUSTER_VOLUME_TMP_SPACE/a"; ls -d "$MUSTER_VOLUME_TMP_SPACE"'
TOO_MUCH = 'dd if=/dev/zero of="$MUSTER_VOLUME_TMP_SPACE/a" bs=1048576 count=4 2> /dev/null; exec sleep 600'


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that the node's user for jobs can get to, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="muster-volumes-") as directory:
        path = Path(directory)
        path.chmod(0o755)
        yield path


def job(script: str) -> JobSpec:
    role = Role(command=("/bin/sh", "-c", script), volumes=(Volume(name="tmp-space", size=2**20),))
    return JobSpec(name="voluminous", roles=(role,))


def written(disk: Path) -> list[str]:
    """The files in volumes, while an agent may be removing them."""
    return [name for _, _, names in os.walk(disk) for name in names]


async def test_a_process_finds_its_volume_by_its_variable_and_the_volume_goes_with_it(place: Path) -> None:
    disk = place / "disk"
    async with (
        coordinator(place) as login,
        client_of(login) as client,
        agent(place, login, "--volumes-dir", str(disk)),
    ):
        submitted = await client.jobs.submit(job(WRITES), queue_anyway=True)
        assert (await client.jobs.wait(submitted.id)).phase is JobPhase.SUCCEEDED
        printed = [line.text async for line in client.jobs.logs(submitted.id, follow=True)]
        assert printed[0] == b"one"
        assert printed[1].startswith(str(disk).encode())
        await until(lambda: written(disk) == [])


async def test_a_job_that_writes_more_than_its_volume_has_ends_with_a_sentence(place: Path) -> None:
    async with coordinator(place) as login, client_of(login) as client, agent(place, login):
        submitted = await client.jobs.submit(job(TOO_MUCH), queue_anyway=True)
        ended = await client.jobs.wait(submitted.id)
    assert ended.phase is JobPhase.FAILED
    assert ended.failure is not None
    assert ended.failure.kind is FailureKind.VOLUME_FULL
    assert "the volume tmp-space holds 4.0 MiB; its size is 1.0 MiB" in ended.failure.message


async def test_what_an_agent_that_was_killed_left_in_volumes_is_cleared_by_the_next(place: Path) -> None:
    disk = place / "disk"
    async with coordinator(place) as login, client_of(login) as client:
        async with agent(place, login, "--volumes-dir", str(disk), ending=signal.SIGKILL):
            submitted = await client.jobs.submit(job(f"{WRITES}; sleep 600"), queue_anyway=True)
            async for _ in client.jobs.logs(submitted.id, follow=True):
                break
        assert written(disk) == ["a"]
        strange = disk / "scratch" / "of-nobody"
        (strange / "x").mkdir(parents=True)
        await client.jobs.stop(submitted.id)
        async with agent(place, login, "--volumes-dir", str(disk)):
            await client.jobs.wait(submitted.id)
            await until(lambda: written(disk) == [])
    assert not strange.exists()
