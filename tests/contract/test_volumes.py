"""Volumes in every runtime: what user code finds, what is kept, what goes, and what nobody else gets to."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agent.executions.layout import ExecutionDirectory
from agent.executions.volumes.amounts import bytes_in
from agent.executions.volumes.node_volumes import NodeVolumes
from agent.logs.spool import LogSpool
from muster.domain.data.volume import Volume, VolumeKeep
from muster.domain.jobs.failure import ExecutionError, Exit, FailureKind
from muster.domain.jobs.job import Role
from tests.contract.runtime_places import PLACES, place_of
from tests.contract.runtimes import (
    Place,
    Trial,
    assignment_for,
    directory_for,
    ignored,
    shell,
    trial,
)

SCRATCH = Volume(name="scratch", size=2**20)
KEPT = Volume(name="models", size=2**20, keep=VolumeKeep.NODE)
PROJECT = "default"


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request, tmp_path)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Where other users get to as well; pytest's own is closed to them."""
    with TemporaryDirectory(dir="/var/tmp", prefix="muster-test-") as directory:
        Path(directory).chmod(0o711)
        yield Path(directory)


def found(place: Place, directory: ExecutionDirectory, volume: Volume) -> str:
    """Where user code finds a volume."""
    path = NodeVolumes().of(directory, PROJECT, volume)
    return volume.target if place.image or path is None else str(path)


@asynccontextmanager
async def with_volume(place: Place, directory: Path, volume: Volume, script: str) -> AsyncIterator[Trial]:
    """A script that finds a volume by $V; its volumes go at the end as the agent clears them."""
    async with trial(place, directory, Role(command=shell(script), volumes=(volume,))) as it:
        it.launch = replace(it.launch, env={**it.launch.env, "V": found(place, it.directory, volume)})
        yield it
        NodeVolumes().clear(it.directory)


def strangers_get_to(path: Path, above: Path) -> bool:
    """Whether a user who owns nothing here may write to a directory below another one."""
    on_the_way = [each for each in path.parents if each.is_relative_to(above) and each != above]
    return bool(path.stat().st_mode & 0o002) and all(each.stat().st_mode & 0o001 for each in on_the_way)


async def test_user_code_writes_to_its_scratch_volume_and_nobody_else_does(place: Place, tmp_path: Path) -> None:
    async with with_volume(place, tmp_path, SCRATCH, 'ls -A "$V"; echo 1 > "$V/a" && cat "$V/a"') as it:
        assert await it.run() == Exit(code=0)
        assert it.printed() == [b"1"]
        path = NodeVolumes().of(it.directory, PROJECT, SCRATCH)
        assert path is not None
        assert (path / "a").read_text() == "1\n"
        assert not strangers_get_to(path, tmp_path)
    assert not path.exists()


async def test_a_kept_volume_is_found_again_by_the_next_job_of_the_project(place: Place, tmp_path: Path) -> None:
    async with with_volume(place, tmp_path, KEPT, 'echo kept > "$V/a"') as it:
        assert await it.run() == Exit(code=0)
    async with with_volume(place, tmp_path, KEPT, 'cat "$V/a"') as it:
        await it.run()
        assert it.printed() == [b"kept"]
        path = NodeVolumes().of(it.directory, PROJECT, KEPT)
        assert path is not None
        assert not strangers_get_to(path, tmp_path)


async def test_a_volume_that_may_only_be_read_shows_what_others_left_and_takes_nothing(
    place: Place, tmp_path: Path
) -> None:
    readable = replace(KEPT, writable=False)
    if place.image is None:
        with pytest.raises(ExecutionError, match="volumes that may only be read is only for containers"):
            async with with_volume(place, tmp_path, readable, "true"):
                pass
        return
    async with with_volume(place, tmp_path, KEPT, 'echo kept > "$V/a"') as it:
        assert await it.run() == Exit(code=0)
    async with with_volume(place, tmp_path, readable, 'cat "$V/a"; (echo 1 > "$V/b") 2> /dev/null || echo no') as it:
        await it.run()
        assert it.printed() == [b"kept", b"no"]


async def test_links_in_a_volume_lead_the_agent_nowhere(place: Place, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"x" * 2**20)
    script = f'ln -s {precious} "$V/file"; ln -s {tmp_path} "$V/directory"'
    async with with_volume(place, tmp_path, SCRATCH, script) as it:
        await it.run()
        path = NodeVolumes().of(it.directory, PROJECT, SCRATCH)
        assert path is not None
        assert bytes_in(path) < 2**20
    assert precious.exists()
    assert not path.exists()


async def test_more_than_the_disk_has_is_refused_before_user_code_runs(place: Place, tmp_path: Path) -> None:
    with pytest.raises(ExecutionError, match=r"of disk; .* are free at") as refused:
        async with with_volume(place, tmp_path, replace(SCRATCH, size=2**49), "true"):
            pass
    assert refused.value.kind is FailureKind.DISK_FULL


async def test_a_volume_in_memory_has_its_size_and_is_its_users_own(place: Place, tmp_path: Path) -> None:
    volume = Volume(name="fast", path="/fast" if place.image else None, tmpfs=8 * 2**20)
    script = 'df -k "$V" | tail -n 1; echo 1 > "$V/a"; stat -c %a "$V"'
    if place.image is None:
        with pytest.raises(ExecutionError, match="volumes in memory is only for containers"):
            async with with_volume(place, tmp_path, volume, script):
                pass
        return
    async with with_volume(place, tmp_path, volume, script) as it:
        assert await it.run() == Exit(code=0)
        df, mode = it.printed()
        assert b" 8192 " in df
        assert mode in {b"700", b"1777"}  # the second where only the image knows who runs in it


async def test_two_executions_are_not_promised_the_same_disk(place: Place, tmp_path: Path) -> None:
    disk = os.statvfs(tmp_path)
    most = Volume(name="most", size=disk.f_bavail * disk.f_frsize * 2 // 3)
    async with place.runtime() as runtime:
        sandboxes = []
        for refused in (False, True):
            role = Role(command=shell("true"), volumes=(most,), image=place.image)
            assignment = assignment_for(role)
            own = directory_for(tmp_path, assignment.execution)
            spool = LogSpool(own.log)
            try:
                sandboxes.append(await runtime.prepare(assignment, own, spool, (), ignored))
                assert not refused
            except ExecutionError as error:
                assert refused
                assert "promised to other executions" in str(error)  # noqa: PT017 - one of the two has to fail
            spool.close()
        for sandbox in sandboxes:
            await sandbox.remove()
