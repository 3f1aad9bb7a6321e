"""What only the Docker runtime does: networks, GPUs, limits, users, mounts."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from agent.code.store import CodeStore
from agent.core.containers.spec import EXECUTION_LABEL
from agent.logs.spool import LogSpool
from agent.runtimes.docker.runtime import DockerRuntime
from muster.domain.data.code import CODE_DIRECTORY, JobCode
from muster.domain.data.tree import ContentEntry, ContentKind, ContentTree, content_tree
from muster.domain.fleet.node import RuntimeOffer
from muster.domain.gangs.log import Stream
from muster.domain.gangs.roster import PortLease
from muster.domain.jobs.failure import ExecutionError, Exit, FailureKind
from muster.domain.jobs.frameworks.dialect import VALOHAI_REPOSITORY, Dialect
from muster.domain.jobs.job import InlineFile, Mount, Network, Resources, Role, RuntimeKind, Ulimit
from muster.transfer.objects import ObjectFiles
from tests.contract.docker_place import DockerPlace
from tests.contract.docker_trials import assigned, prepared, refusal, script
from tests.contract.runtimes import directory_for, ignored
from tests.docker_daemon import containers, daemon, import_busybox, inspected, why_no_daemon

pytestmark = pytest.mark.docker

MIB = 1 << 20


@pytest.fixture
def place(tmp_path: Path, docker_socket: Path) -> DockerPlace:
    return DockerPlace(tmp_path, docker_socket)


@pytest.fixture
def leases() -> tuple[PortLease, ...]:
    """One port that nobody else has just now."""
    with socket.socket() as free:
        free.bind(("", 0))
        number = free.getsockname()[1]
    return (PortLease(name="master", host_port=number, container_port=29500),)


@contextlib.asynccontextmanager
async def connected(lease: PortLease) -> AsyncIterator[asyncio.StreamReader]:
    reader, writer = await asyncio.open_connection("127.0.0.1", lease.host_port)
    try:
        yield reader
    finally:
        writer.close()
        await writer.wait_closed()


async def test_a_published_port_leads_to_user_code(
    place: DockerPlace, tmp_path: Path, leases: tuple[PortLease, ...]
) -> None:
    role = script("echo served > /tmp/answer; echo listening; nc -l -p 29500 < /tmp/answer")
    async with (
        place.runtime() as runtime,
        prepared(runtime, tmp_path, assigned(role, network=Network.BRIDGE), ports=leases) as it,
    ):
        await it.release()
        await it.says(b"listening")
        assert await until_answered(leases[0]) == b"served\n"
        assert await it.end() == Exit(code=0)


async def until_answered(lease: PortLease) -> bytes:
    """docker-proxy accepts before user code listens, and then closes: an empty answer is none."""
    while True:
        async with connected(lease) as reader:
            with contextlib.suppress(ConnectionError):
                if answer := await reader.read():
                    return answer


async def test_the_port_is_held_from_prepare_to_remove(
    place: DockerPlace, tmp_path: Path, leases: tuple[PortLease, ...]
) -> None:
    async with place.runtime() as runtime:
        async with prepared(runtime, tmp_path, assigned(script("true"), network=Network.BRIDGE), ports=leases):
            with socket.socket() as other, pytest.raises(OSError, match="in use"):
                other.bind(("", leases[0].host_port))
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("", leases[0].host_port))


async def test_a_taken_port_is_refused_when_preparing(
    place: DockerPlace, tmp_path: Path, leases: tuple[PortLease, ...]
) -> None:
    assignment = assigned(script("true"), network=Network.BRIDGE)
    directory = directory_for(tmp_path, assignment.execution)
    with socket.socket() as other, contextlib.closing(LogSpool(directory.log)) as spool:
        other.bind(("", leases[0].host_port))
        other.listen()
        async with place.runtime() as runtime:
            with pytest.raises(ExecutionError, match=str(leases[0].host_port)) as caught:
                await runtime.prepare(assignment, directory, spool, leases, ignored)
    assert caught.value.kind is FailureKind.PORT_TAKEN
    assert await place.left(assignment.execution) == []


@pytest.mark.parametrize("network", list(Network))
async def test_members_are_known_by_name(place: DockerPlace, tmp_path: Path, network: Network) -> None:
    assignment = assigned(script("grep -w 'worker-1\\|master-0' /etc/hosts"), network=network)
    async with place.runtime() as runtime, prepared(runtime, tmp_path, assignment) as it:
        it.launch = replace(it.launch, host_names={"master-0": "10.1.2.3", "worker-1": "10.1.2.4"})
        await it.run()
        assert [line.split() for line in it.printed()] == [[b"10.1.2.3", b"master-0"], [b"10.1.2.4", b"worker-1"]]


async def test_on_a_bridge_the_own_host_name_is_the_own_address(place: DockerPlace, tmp_path: Path) -> None:
    text = 'hostname; address=$(hostname -i); ip -4 addr show eth0 | grep -c "inet $address/"'
    assignment = replace(assigned(script(text), network=Network.BRIDGE), rank=3)
    async with place.runtime() as runtime, prepared(runtime, tmp_path, assignment) as it:
        await it.run()
        assert it.printed() == [b"rank-3", b"1"]


async def test_user_code_sees_exactly_its_gpus(place: DockerPlace, tmp_path: Path) -> None:
    role = script("echo $NVIDIA_VISIBLE_DEVICES", env={"NVIDIA_VISIBLE_DEVICES": "all"}, resources=Resources(gpus=2))
    async with place.runtime() as runtime:
        for given in (("GPU-aaaa", "GPU-bbbb"), ("GPU-cccc", "MIG-dddd")):
            async with prepared(runtime, tmp_path, assigned(role, gpus=given)) as it:
                await it.run()
                assert it.printed() == [",".join(given).encode()]


async def test_user_code_without_gpus_cannot_ask_for_all(place: DockerPlace, tmp_path: Path) -> None:
    role = script("echo $NVIDIA_VISIBLE_DEVICES", env={"NVIDIA_VISIBLE_DEVICES": "all"})
    async with place.runtime() as runtime, prepared(runtime, tmp_path, assigned(role)) as it:
        await it.run()
        assert it.printed() == [b"void"]


async def test_an_engine_that_cannot_hand_out_gpus_is_noticed_when_preparing(tmp_path: Path) -> None:
    reason = why_no_daemon()
    if reason:
        pytest.skip(reason)
    with daemon(gpu_hook=False) as private:
        import_busybox(private.socket)
        place = DockerPlace(tmp_path, private.socket)
        assignment = assigned(script("true", resources=Resources(gpus=1)), gpus=["GPU-aaaa"])
        refused = await refusal(place, tmp_path, assignment)
    assert refused.kind is FailureKind.GPU
    assert "NVIDIA Container Toolkit" in str(refused)


async def test_a_user_of_the_image_can_write_outputs(place: DockerPlace, tmp_path: Path) -> None:
    role = script("id -un; echo kept > /muster/outputs/result; touch /muster/config/x", user="app")
    async with place.runtime() as runtime, prepared(runtime, tmp_path, assigned(role)) as it:
        assert await it.run() == Exit(code=1)
        assert it.printed() == [b"app"]
        assert (it.directory.outputs / "result").read_text() == "kept\n"
        assert it.printed(Stream.STDERR) == [b"touch: /muster/config/x: Read-only file system"]


async def test_an_unknown_user_is_noticed_when_preparing(place: DockerPlace, tmp_path: Path) -> None:
    refused = await refusal(place, tmp_path, assigned(script("true", user="nobody-knows")))
    assert refused.kind is FailureKind.INVALID_OPTION
    assert "nobody-knows" in str(refused)


async def test_limits_hold_in_the_container(place: DockerPlace, tmp_path: Path) -> None:
    role = script(
        "ulimit -n; df -k /dev/shm | tail -1 | awk '{print $2}'",
        resources=Resources(cpu_millis=500, cpu_limit=500, memory=64 * MIB, shm=8 * MIB),
        ulimits=(Ulimit(name="nofile", soft=100, hard=200),),
    )
    async with place.runtime() as runtime, prepared(runtime, tmp_path, assigned(role)) as it:
        await it.run()
        assert it.printed() == [b"100", b"8192"]
        [container] = containers(place.socket, f"{EXECUTION_LABEL}={it.sandbox.execution}")
        limits = inspected(place.socket, container["Id"])["HostConfig"]
        assert (limits["Memory"], limits["MemorySwap"], limits["NanoCpus"]) == (64 * MIB, 64 * MIB, 500_000_000)


async def test_more_memory_than_allowed_is_told_apart(place: DockerPlace, tmp_path: Path) -> None:
    role = script("x=a; while :; do x=$x$x; done", resources=Resources(memory=20 * MIB))
    async with place.runtime() as runtime, prepared(runtime, tmp_path, assigned(role)) as it:
        assert await it.run() == Exit(code=137, out_of_memory=True)


async def test_a_part_that_is_killed_for_want_of_memory_is_told_although_the_container_ends_well(
    place: DockerPlace, tmp_path: Path
) -> None:
    role = script("tail /dev/zero; echo $?", resources=Resources(memory=20 * MIB))
    async with place.runtime() as runtime, prepared(runtime, tmp_path, assigned(role)) as it:
        assert await it.run() == Exit(code=0, out_of_memory=True)
        assert it.printed()[-1] == b"137"


async def test_a_signal_is_told_apart_from_an_exit(place: DockerPlace, tmp_path: Path) -> None:
    async with place.runtime() as runtime, prepared(runtime, tmp_path, assigned(script("kill -SEGV $$"))) as it:
        ended = await it.run()
        assert (ended.code, ended.signal) == (139, "SIGSEGV")


async def test_files_are_relative_to_the_working_directory_of_the_image(place: DockerPlace, tmp_path: Path) -> None:
    image = "muster-test/app:1"
    import_busybox(place.socket, image, {"WORKDIR": "/srv/app", "CMD": '["cat", "greeting"]'})
    files = (InlineFile(path="greeting", content=b"hello\n"), InlineFile(path="/tmp/note", content=b"x"))
    role = Role(image=image, files=files)
    async with place.runtime() as runtime, prepared(runtime, tmp_path, assigned(role)) as it:
        await it.run()
        assert it.printed() == [b"hello"]


async def test_files_leave_the_directories_above_them_as_they_are(place: DockerPlace, tmp_path: Path) -> None:
    role = script("stat -c %a /tmp; cat /tmp/note", files=(InlineFile(path="/tmp/note", content=b"x\n"),), user="app")
    async with place.runtime() as runtime, prepared(runtime, tmp_path, assigned(role)) as it:
        await it.run()
        assert it.printed() == [b"1777", b"x"]


async def test_code_of_the_job_is_where_it_runs_and_the_users_own(place: DockerPlace, tmp_path: Path) -> None:
    tree = kept_tree(
        tmp_path / "cache",
        {"train.sh": b"#!/bin/sh\ncat a.txt extra >> a.txt.new; cat a.txt.new; pwd", "a.txt": b"a\n"},
    )
    code = JobCode(tree=tree.digest, size=len(tree.form))
    files = (InlineFile(path="extra", content=b"b\n"),)
    role = Role(image=place.image, command=("sh", "train.sh"), code=code, workdir=CODE_DIRECTORY, files=files)
    store, assignment = CodeStore(tmp_path / "cache"), assigned(role)
    await store.fetch(assignment, ignored)
    async with place.runtime(code=store) as runtime, prepared(runtime, tmp_path, assignment) as it:
        assert await it.run() == Exit(code=0)
        assert it.printed() == [b"a", b"b", b"/muster/code"]


def kept_tree(cache: Path, files: Mapping[str, bytes]) -> ContentTree:
    """A tree as a node has it that has fetched it before."""
    names = {path: sha256(content).hexdigest() for path, content in files.items()}
    entries = (
        ContentEntry(path=path, kind=ContentKind.FILE, size=len(files[path]), content=name)
        for path, name in names.items()
    )
    tree = content_tree(entries)
    for digest, content in {tree.digest: tree.form, **{names[path]: each for path, each in files.items()}}.items():
        with ObjectFiles(cache).arriving(digest, len(content)) as arriving:
            arriving.write(content)
            arriving.commit()
    return tree


async def test_a_script_without_its_interpreter_is_missed_when_arming(place: DockerPlace, tmp_path: Path) -> None:
    files = (InlineFile(path="/train.sh", content=b"#!/usr/bin/bash -e\n", executable=True),)
    role = Role(image=place.image, command=("/train.sh",), files=files)
    async with place.runtime() as runtime, prepared(runtime, tmp_path, assigned(role)) as it:
        with pytest.raises(ExecutionError, match="a script for /usr/bin/bash, which is not there") as caught:
            await it.arm()
        assert caught.value.kind is FailureKind.COMMAND_NOT_FOUND


async def test_mounts_below_allowed_directories_are_there(place: DockerPlace, tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "set").mkdir(parents=True)
    data.chmod(0o1777)
    (data / "set" / "part").write_text("one\n")
    mounts = (
        Mount(source=str(data / "set"), target="/data"),
        Mount(source=str(data), target="/scratch", read_only=False),
    )
    role = script("cat /data/part; touch /data/x || touch /scratch/x", mounts=mounts)
    async with place.runtime(mount_roots=[data]) as runtime, prepared(runtime, tmp_path, assigned(role)) as it:
        assert await it.run() == Exit(code=0)
        assert it.printed() == [b"one"]
        assert (data / "x").exists()
        assert not (data / "set" / "x").exists()


async def test_the_directories_are_where_valohai_has_them_for_whoever_asks(place: DockerPlace, tmp_path: Path) -> None:
    code = "pwd; ls /valohai; cat /valohai/config/distributed.json; echo kept > /valohai/outputs/result"
    role = script(f"{code}; touch /valohai/config/x", user="app", workdir=VALOHAI_REPOSITORY)
    assignment = replace(assigned(role), dialects=(Dialect.VALOHAI,))
    async with place.runtime() as runtime, prepared(runtime, tmp_path, assignment) as it:
        assert await it.run() == Exit(code=1)
        assert it.printed() == [b"/valohai/repository", b"config", b"inputs", b"outputs", b"repository", b"{}"]
        assert it.printed(Stream.STDERR) == [b"touch: /valohai/config/x: Read-only file system"]
        assert (it.directory.outputs / "result").read_text() == "kept\n"


@pytest.mark.parametrize("source", ["/etc", "allowed/../../etc", "allowed/way-out", "allowed/missing"])
async def test_other_mounts_are_refused(place: DockerPlace, tmp_path: Path, source: str) -> None:
    (tmp_path / "allowed").mkdir()
    (tmp_path / "etc").mkdir()
    (tmp_path.parent / "etc").mkdir(exist_ok=True)
    (tmp_path / "allowed" / "way-out").symlink_to("/etc")
    role = script("true", mounts=(Mount(source=str(tmp_path / source), target="/data"),))
    refused = await refusal(place, tmp_path, assigned(role), mount_roots=[tmp_path / "allowed"])
    assert refused.kind is FailureKind.INVALID_OPTION
    assert str(refused).startswith("mounts: ")


@pytest.mark.parametrize("target", ["/", "relative", "/muster/config", "/proc/sys", "/data/../sys"])
async def test_mounts_over_what_the_container_needs_are_refused(
    place: DockerPlace, tmp_path: Path, target: str
) -> None:
    role = script("true", mounts=(Mount(source=str(tmp_path), target=target),))
    refused = await refusal(place, tmp_path, assigned(role), mount_roots=[tmp_path])
    assert refused.kind is FailureKind.INVALID_OPTION


async def test_a_full_disk_is_noticed_when_preparing(place: DockerPlace, tmp_path: Path) -> None:
    refused = await refusal(place, tmp_path, assigned(script("true")), min_free=1 << 60)
    assert refused.kind is FailureKind.DISK_FULL


async def test_an_image_without_a_program_needs_a_command(place: DockerPlace, tmp_path: Path) -> None:
    refused = await refusal(place, tmp_path, assigned(Role(image=place.image)))
    assert refused.kind is FailureKind.INVALID_OPTION
    assert "names no program" in str(refused)


@pytest.mark.parametrize("when", ["trying", "publishing"])
async def test_a_prepare_that_is_cancelled_half_way_leaves_nothing(
    place: DockerPlace, tmp_path: Path, leases: tuple[PortLease, ...], when: str
) -> None:
    assignment = assigned(script("true", user="app"), network=Network.BRIDGE)
    directory = directory_for(tmp_path, assignment.execution)
    reached = asyncio.Event()

    def progress(text: str) -> None:
        if text.startswith(when):
            reached.set()

    with contextlib.closing(LogSpool(directory.log)) as spool:
        async with place.runtime() as runtime, asyncio.TaskGroup() as tasks:
            going = runtime.prepare(assignment, directory, spool, leases, progress)
            preparing = tasks.create_task(going, name="prepare")
            await reached.wait()
            preparing.cancel()
    assert preparing.cancelled()
    assert await place.left(assignment.execution) == []


async def test_where_docker_is_not_the_offer_says_so(tmp_path: Path) -> None:
    runtime = DockerRuntime(tmp_path / "docker.sock", "test")
    offer = await runtime.offer()
    await runtime.close()
    assert offer == RuntimeOffer(
        kind=RuntimeKind.DOCKER,
        gpus=False,
        problem=f"there is no Docker socket {tmp_path}/docker.sock; install Docker, or tell the agent where it is",
    )
