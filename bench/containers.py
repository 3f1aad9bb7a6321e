"""Containers: Muster's Docker runtime beside the same containers created and started with bare calls of Docker's API.

The same image, program, mounts, rights, limits, log driver and host network on the same private dockerd, in turn. All
containers of a gang run on this one machine, so the daemon's own rate is part of both. Beside it, what those options
cost (Docker's defaults instead), and what it costs that none is started before all have been created.
"""

import asyncio
import json
import shutil
import tarfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiodocker
import aiohttp

from bench.figures import Bar
from bench.fleet import Fleet, fleet
from bench.programs import ProgramError, ended_at_exit, start
from bench.scratch import Scratch, unmount
from bench.setting import Setting, Turns, stamps
from muster.domain.fleet.access import Permissions
from muster.domain.fleet.user import NOBODY
from muster.domain.jobs.job import DEFAULT_PIDS, JobSpec, Mount, PullPolicy, Resources, Role

IMAGE = "muster-bench/stamp:1"
READY_WITHIN = 60.0
CALL_WITHIN = 60.0
ONE_BAR = Bar(figure="Docker runtime, 1 container: over the bare-API floor", limit=25, unit="ms")
EIGHT_BAR = Bar(figure="Docker runtime, 8 at once: ratio to the bare-API floor", limit=1.15)
SIZES = (1, 8)
STAMPS = "/stamps"
SETTLES = 0.3
"""Seconds for dockerd, which clears away after its answers."""

# As in agent/core/containers/spec.py.
OPTIONS: Mapping[str, Any] = {
    "CapDrop": ["ALL"],
    "SecurityOpt": ["no-new-privileges"],
    "PidsLimit": DEFAULT_PIDS,
    "IpcMode": "private",
    "CgroupnsMode": "private",
    "Init": True,
    "LogConfig": {"Type": "local", "Config": {"max-size": "100m", "max-file": "3", "compress": "false"}},
    "NanoCpus": Resources().cpu_millis * 1_000_000,
}
OWN_MOUNTS = ("config", "outputs", "home")
"""Directories of an execution."""


async def measure(setting: Setting) -> None:
    """Bare calls and Muster in turn."""
    if not setting.has("docker"):
        return
    async with dockerd(setting.scratch) as socket:
        offer = ("--cpus", str(max(SIZES) * Resources().cpu_millis // 1000))
        options = ("--docker-socket", socket, "--mount-root", setting.scratch.path, *offer)
        async with fleet(setting.scratch, 1, *options) as muster, connected(socket) as docker:
            await muster.client.projects.allow("default", Permissions(host_paths=(str(setting.scratch.path),)))
            for size in SIZES:
                await setting.quiet(f"{size} containers: bare API, Muster")
                await _compare(setting, muster, docker, size)
    setting.findings.excess(ONE_BAR, "containers 1: Muster", "containers 1: bare API")
    setting.findings.ratio(EIGHT_BAR, "containers 8: Muster", "containers 8: bare API")


async def _compare(setting: Setting, muster: Fleet, docker: aiodocker.Docker, size: int) -> None:
    bare = partial(_bare, docker, size)
    ways: Mapping[str, Callable[[Path], Awaitable[float]]] = {
        "bare API": partial(bare, _alike),
        "Muster": partial(_muster, muster, size),
        "bare API, all created first": partial(bare, _alike, all_first=True),
        "bare API, Docker's defaults": partial(bare, _plain),
    }
    directory, turns = setting.scratch.fresh("stamps"), Turns(setting.repeats(12, 4))
    for turn in turns:
        for number, (name, way) in enumerate(ways.items()):
            place = directory / f"{turn}-{number}"
            await asyncio.to_thread(_make_open, place)
            turns.keep({name: await way(place)})
            await asyncio.sleep(SETTLES)
    for name, values in turns.found.items():
        setting.findings.take(f"containers {size}: {name}", values, "ms")


def _make_open(directory: Path) -> None:
    """Open a directory for containers that do not run as root."""
    for each in (directory, *(directory / name for name in OWN_MOUNTS)):
        each.mkdir()
        each.chmod(0o777)


def _plain(directory: Path) -> dict[str, Any]:
    """A container with Docker's defaults."""
    host = {"NetworkMode": "host", "Binds": [f"{directory}:{STAMPS}"]}
    return {"Image": IMAGE, "Cmd": ["/stamp", f"{STAMPS}/all"], "HostConfig": host}


def _alike(directory: Path) -> dict[str, Any]:
    """A container as Muster makes them."""
    plain = _plain(directory)
    mounts = [f"{directory}:{STAMPS}", *(f"{directory / name}:/muster/{name}" for name in OWN_MOUNTS)]
    host = {**plain["HostConfig"], **OPTIONS, "Binds": mounts}
    return {**plain, "User": str(NOBODY), "Healthcheck": {"Test": ["NONE"]}, "HostConfig": host}


async def _bare(
    docker: aiodocker.Docker,
    size: int,
    config: Callable[[Path], dict[str, Any]],
    directory: Path,
    *,
    all_first: bool = False,
) -> float:
    """Milliseconds until the last program runs; `all_first`: none is started before all have been created."""
    containers: list[aiodocker.containers.DockerContainer] = []
    all_created = asyncio.Barrier(size)

    async def one() -> None:
        container = await docker.containers.create(config(directory))
        containers.append(container)
        if all_first:
            await all_created.wait()
        await container.start()

    began = time.time_ns()
    async with asyncio.timeout(CALL_WITHIN):
        await asyncio.gather(*(one() for _ in range(size)))
        for container in containers:
            await container.wait()
            await container.delete()
    return _last(directory, began, size)


async def _muster(muster: Fleet, size: int, directory: Path) -> float:
    role = Role(
        count=size,
        image=IMAGE,
        pull=PullPolicy.NEVER,
        command=("/stamp", f"{STAMPS}/all"),
        mounts=(Mount(source=str(directory), target=STAMPS, read_only=False),),
    )
    began = time.time_ns()
    job = await muster.client.jobs.submit(JobSpec(name="bench", roles=(role,)))
    await muster.ended(job.id)
    taken = _last(directory, began, size)
    await muster.settled(job.id)
    return taken


def _last(directory: Path, began: int, size: int) -> float:
    written = stamps(directory / "all")
    if len(written) != size:
        raise ProgramError(f"{len(written)} of {size} containers wrote into {directory}")
    return (max(started for started, _, _ in written) - began) / 1e6


@asynccontextmanager
async def dockerd(scratch: Scratch) -> AsyncIterator[Path]:
    """The socket of a private daemon that has the image; no firewall rules, no bridge."""
    directory = scratch.fresh("docker")
    socket = directory / "docker.sock"
    places = ["-H", f"unix://{socket}", "--data-root", directory / "data", "--exec-root", directory / "exec"]
    network = ["--iptables=false", "--ip6tables=false", "--ip-masq=false", "--ip-forward=false", "--bridge=none"]
    try:
        async with ended_at_exit() as programs:
            command = ["dockerd", *places, "--pidfile", directory / "docker.pid", *network]
            programs.append(start(command, directory / "dockerd.log"))
            async with asyncio.timeout(READY_WITHIN):
                while not socket.exists():
                    await asyncio.sleep(0.05)
            async with connected(socket) as docker:
                await _import_image(docker, scratch)
            yield socket
    finally:
        await asyncio.to_thread(unmount, directory)


@asynccontextmanager
async def connected(socket: Path) -> AsyncIterator[aiodocker.Docker]:
    """A client of the daemon."""
    connector = aiohttp.UnixConnector(path=str(socket))
    docker = aiodocker.Docker(url="unix://localhost", connector=connector)
    try:
        yield docker
    finally:
        await docker.close()
        await connector.close()


async def _import_image(docker: aiodocker.Docker, scratch: Scratch) -> None:
    """An image of busybox and the stamping program."""
    tree = scratch.fresh("image")
    shutil.copy(scratch.program("stamp", "-static"), tree / "stamp")
    (tree / "bin").mkdir()
    shutil.copy("/bin/busybox", tree / "bin" / "sh")
    archive = scratch.path / "image.tar"
    with tarfile.open(archive, "w") as tar:
        for each in sorted(tree.iterdir()):
            tar.add(each, each.name)
    name, _, tag = IMAGE.partition(":")
    query = {"fromSrc": "-", "repo": name, "tag": tag}
    content = archive.read_bytes()
    async with asyncio.timeout(READY_WITHIN):
        said = await docker._query_json("images/create", "POST", params=query, data=content)  # noqa: SLF001 - no other way to import
    if "errorDetail" in json.dumps(said):
        raise ProgramError(f"dockerd does not take the image: {said}")
