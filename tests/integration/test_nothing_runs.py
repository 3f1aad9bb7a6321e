"""What goes wrong before the release: nothing runs anywhere, and the failure names rank, node and cause."""

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from muster.domain.errors import ConflictError, InvalidJobError
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.job import InlineFile, Network, Resources, Role
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.view import ExecutionView, JobView
from tests.integration.fleet import Fleet, executions, python, running_fleet
from tests.integration.jobs import command, shell
from tests.integration.obstacles import RuntimeWithObstacles

SMALL = Resources(cpu_millis=100)


async def assert_blamed(fleet: Fleet, job: JobView, culprit: ExecutionView, kind: FailureKind, *causes: str) -> None:
    """The job failed because of this execution, and no execution ever ran."""
    failure = job.failure
    assert job.phase is JobPhase.FAILED
    assert failure is not None
    assert (failure.kind, failure.rank, failure.node) == (kind, culprit.rank, culprit.node)
    for cause in causes:
        assert cause in failure.message
    assert job.summary == f"rank {culprit.rank} on {culprit.node}: {failure.message}"
    assert (await fleet.client.jobs.why(job.id)).failure == failure
    assert {each.state for each in executions(job)} <= {State.FAILED, State.STOPPED}
    assert not any(step.state is State.RUNNING for each in executions(job) for step in each.transitions)
    assert await fleet.output(job.id, follow=True) == []


def on_node(job: JobView, node: str) -> ExecutionView:
    (found,) = [each for each in executions(job) if each.node == node]
    return found


async def test_a_command_that_is_missing(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        master = Role(name="master", command=("/bin/sh", "-c", "echo ran"), resources=SMALL)
        worker = Role(name="worker", command=("no-such-program",), resources=SMALL)
        job = await fleet.run(replace(shell("true", max_per_node=1), roles=(master, worker)))
        culprit = executions(job)[1]
        await assert_blamed(fleet, job, culprit, FailureKind.COMMAND_NOT_FOUND, 'no program "no-such-program"')


async def test_a_fixed_port_that_another_program_has(tmp_path: Path) -> None:
    listen = """
import os, socket, time
server = socket.create_server((os.environ["MUSTER_ADDRESS"], 30150))
print("listens", flush=True)
time.sleep(60)
"""
    async with running_fleet(tmp_path, "a", "b") as fleet:
        first = await fleet.client.jobs.submit(command(*python(listen), node_labels={"name": "b"}))
        await fleet.printed(first.id, 1)
        job = await fleet.run(shell("echo ran", 2, ports={"data": 30_150}))
        await assert_blamed(fleet, job, on_node(job, "b"), FailureKind.PORT_TAKEN, "port 30150 is taken by process ")
        await fleet.client.jobs.stop(first.id)
        await fleet.client.jobs.wait(first.id)


async def test_two_workers_of_one_node_cannot_have_the_same_fixed_port(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        with pytest.raises(ConflictError, match="for one more it needs port 30151, which another execution there has"):
            await fleet.client.jobs.submit(shell("echo ran", 2, ports={"data": 30_151}))


async def test_an_inline_file_that_cannot_be_written(tmp_path: Path) -> None:
    obstacle = tmp_path / "file"
    obstacle.touch()
    files = (InlineFile(path=str(obstacle / "below"), content=b""),)
    async with running_fleet(tmp_path, "a", "b") as fleet:
        master = Role(name="master", command=("true",), resources=SMALL)
        worker = Role(name="worker", command=("true",), resources=SMALL, files=files)
        job = await fleet.run(replace(shell("true", max_per_node=1), roles=(master, worker)))
        culprit = executions(job)[1]
        await assert_blamed(fleet, job, culprit, FailureKind.INVALID_OPTION, "cannot write", str(obstacle))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    directory = tmp_path / "small"
    directory.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system")
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(directory)]
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
    with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
        (directory / "one-more").write_bytes(b"x")
    return filler


async def test_a_full_disk_at_the_start(tmp_path: Path, small_disk: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        await fleet.start_agent("b", state=small_disk / "state")
        await fleet.connected("b")
        filler = fill(small_disk)
        job = await fleet.run(shell("echo ran", 2, max_per_node=1))
        await assert_blamed(fleet, job, on_node(job, "b"), FailureKind.DISK_FULL)

        filler.unlink()
        assert (await fleet.run(shell("true", 2, max_per_node=1))).phase is JobPhase.SUCCEEDED


async def test_a_disk_that_is_full_when_the_roster_comes(tmp_path: Path, small_disk: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        late = RuntimeWithObstacles()
        late.gates["arm"].close()
        await fleet.start_agent("b", state=small_disk / "state", runtime=late)
        await fleet.connected("b")
        job = await fleet.client.jobs.submit(shell("echo ran", 2, max_per_node=1))
        await late.gates["arm"].reached.wait()
        fill(small_disk)
        late.gates["arm"].open()
        job = await fleet.client.jobs.wait(job.id)
        await assert_blamed(fleet, job, on_node(job, "b"), FailureKind.DISK_FULL)


async def test_the_check_in_deadline_names_who_is_missing_and_what_it_was_doing(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        late = RuntimeWithObstacles()
        late.gates["prepare"].close()
        await fleet.start_agent("b", runtime=late)
        await fleet.connected("b")
        job = await fleet.run(shell("echo ran", 2, max_per_node=1, check_in=timedelta(seconds=2)))
        culprit = on_node(job, "b")
        said = "had not checked in after 2 s (standing before a gate), as the only one of 2"
        await assert_blamed(fleet, job, culprit, FailureKind.CHECK_IN_TIMEOUT, said)


async def test_the_check_in_deadline_covers_arming_too(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        late = RuntimeWithObstacles()
        late.gates["arm"].close()
        await fleet.start_agent("b", runtime=late)
        await fleet.connected("b")
        job = await fleet.client.jobs.submit(shell("echo ran", 2, max_per_node=1, check_in=timedelta(seconds=2)))
        stopping = await fleet.until(job.id, lambda view: view.failure is not None)
        late.gates["arm"].open()  # what is being armed is armed to the end before it is stopped
        job = await fleet.client.jobs.wait(stopping.id)
        said = "had not armed after 2 s (checked in), as the only one of 2"
        await assert_blamed(fleet, job, on_node(job, "b"), FailureKind.CHECK_IN_TIMEOUT, said)


async def test_an_agent_that_was_cut_off_is_named_by_the_deadline(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        fleet.cable("b").hold(downwards=True)
        submitted = await fleet.client.jobs.submit(shell("echo ran", 2, max_per_node=1, check_in=timedelta(seconds=2)))
        job = await fleet.until(submitted.id, lambda view: view.failure is not None)
        assert job.failure is not None
        assert "(placed)" in job.failure.message
        fleet.cable("b").let_go()
        job = await fleet.client.jobs.wait(job.id)
        await assert_blamed(fleet, job, on_node(job, "b"), FailureKind.CHECK_IN_TIMEOUT)


async def test_an_option_that_only_containers_have_is_refused_at_once(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        with pytest.raises(InvalidJobError, match="user: needs an image: a plain process cannot have it"):
            await fleet.client.jobs.submit(command("true", user="nobody"))


async def test_a_network_that_only_containers_have_is_refused_at_once(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        with pytest.raises(InvalidJobError, match="network: bridge needs an image"):
            await fleet.client.jobs.submit(command("true", network=Network.BRIDGE))
