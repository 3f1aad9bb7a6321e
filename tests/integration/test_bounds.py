"""Too much of everything: who brings it is told, and nobody else notices."""

import asyncio
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from muster.domain.errors import ExhaustedError, InvalidJobError
from muster.domain.jobs.job import InlineFile
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.rpc.channel import open_channel
from muster.rpc.v1 import jobs_pb2
from muster.rpc.v1.jobs_pb2_grpc import JobServiceStub
from tests.integration.fleet import SHOWN, Fleet, running_fleet
from tests.integration.jobs import shell


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    directory = tmp_path / "disk"
    directory.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system")
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(directory)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount a small file system: {done.stderr}")
    yield directory
    subprocess.run(["umount", "--lazy", directory], check=True)


def fill(directory: Path) -> Path:
    """Leave no byte free; the file that has them all."""
    filler = directory / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4096))
    return filler


async def test_a_coordinator_on_a_full_disk_refuses_jobs_keeps_what_runs_and_goes_on_when_there_is_room(
    tmp_path: Path, small_disk: Path
) -> None:
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    async with running_fleet(small_disk) as fleet:
        await fleet.start_agent("a", state=tmp_path / "state")
        await fleet.connected("a")
        runs = await fleet.client.jobs.submit(shell(f"echo started; read line < {fifo}; echo done"))
        await fleet.printed(runs.id, 1)
        await fleet.until_states(runs.id, State.RUNNING)

        filler = fill(small_disk)
        taken, refused = await _submitted_until_refused(fleet)
        assert re.search(r"can store nothing new: .*full.*; nothing of this change was stored", refused)
        assert {job.id async for job in fleet.client.jobs.list()} == {runs.id, *taken}
        assert (await fleet.client.jobs.get(runs.id)).phase is JobPhase.RUNNING

        filler.unlink()
        await fleet.tell(fifo)
        assert (await fleet.client.jobs.wait(runs.id)).phase is JobPhase.SUCCEEDED
        assert {(await fleet.client.jobs.wait(job)).phase for job in taken} <= {JobPhase.SUCCEEDED}
        assert (await fleet.run(shell("true"))).phase is JobPhase.SUCCEEDED
        assert await fleet.texts(runs.id, follow=True) == ["0 started", "0 done"]


async def test_a_job_that_is_far_too_large_is_refused(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        large = shell("true", env={f"V{number}": "x" * 100_000 for number in range(55)})
        with pytest.raises(
            InvalidJobError, match=r"the job is 5\.2 MiB large; 4 MiB are the most\. Put large files into"
        ):
            await fleet.client.jobs.submit(large)
        larger = shell("true", env={f"V{number}": "x" * 100_000 for number in range(200)})
        with pytest.raises(ExhaustedError, match="larger than max"):
            await fleet.client.jobs.submit(larger)
        assert (await fleet.run(shell("true"))).phase is JobPhase.SUCCEEDED


async def test_a_client_that_submits_everything_at_once_gets_all_of_it_taken(tmp_path: Path) -> None:
    """More than gRPC lets through at once."""
    async with running_fleet(tmp_path) as fleet, asyncio.TaskGroup() as tasks:
        submits = [
            tasks.create_task(fleet.client.jobs.submit(shell("true"), queue_anyway=True), name=f"submit {number}")
            for number in range(1500)
        ]
        await asyncio.wait(submits)
        assert len({each.result().id for each in submits}) == 1500


async def test_a_reader_that_does_not_read_is_cut_off_with_the_reason_and_others_read_on(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet, asyncio.timeout(60):
        await fleet.stop_coordinator()
        fleet.reader_patience = 0.2
        await fleet.start_coordinator()
        await fleet.start_agents("a")
        job = await fleet.run(shell("yes $(printf %010000d 0) | head -n 3000"))
        async with open_channel(fleet.address) as channel:
            call: Any = JobServiceStub(channel).Logs(
                jobs_pb2.LogsRequest(job=job.id, follow=True), metadata=SHOWN.metadata
            )
            await call.read()
            await fleet.journal.heard("a reader that does not read is cut off")
            assert len(await fleet.output(job.id, follow=True)) == 3000
            with suppress(grpc.aio.AioRpcError):
                while await call.read() is not grpc.aio.EOF:
                    pass
            assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert await call.details() == "nothing was read for 0.2 s, so the coordinator stopped sending"


async def _submitted_until_refused(fleet: Fleet) -> tuple[list[str], str]:
    """Jobs that were accepted, and why the next one was not; more than 50 do not fit."""
    large = shell("true", files=(InlineFile(path="x", content=b"x" * 100_000),))
    taken: list[str] = []
    try:
        for _ in range(50):
            taken.append((await fleet.client.jobs.submit(large, queue_anyway=True)).id)  # noqa: PERF401 - one by one
    except ExhaustedError as error:
        return taken, str(error)
    raise AssertionError("all were accepted")
