"""Containers: Muster's Docker runtime beside the same containers created and started with bare calls of Docker's API.

The same image, program, mount and host network on the same private dockerd, in turn. All containers of a gang run on
this one machine, so the daemon's own rate is part of both.
"""

import asyncio
import json
import shutil
import tarfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiodocker
import aiohttp

from bench.figures import Bar
from bench.fleet import Fleet, fleet
from bench.programs import ProgramError, ended_at_exit, start
from bench.scratch import Scratch, unmount
from bench.setting import Setting, stamps
from muster.domain.job import JobSpec, Mount, PullPolicy, Resources, Role

IMAGE = "muster-bench/stamp:1"
READY_WITHIN = 60.0
CALL_WITHIN = 60.0
ONE_BAR = Bar(figure="Docker runtime, 1 container: over the bare-API floor", limit=25, unit="ms")
EIGHT_BAR = Bar(figure="Docker runtime, 8 at once: ratio to the bare-API floor", limit=1.15)
SIZES = (1, 8)
STAMPS = "/stamps"


async def measure(setting: Setting) -> None:
    """Bare calls and Muster in turn."""
    if not setting.has("docker"):
        return
    async with dockerd(setting.scratch) as socket:
        options = ("--docker-socket", socket, "--mount-root", setting.scratch.path)
        async with fleet(setting.scratch, 1, *options) as muster, connected(socket) as docker:
            for size in SIZES:
                await setting.quiet(f"{size} containers: bare API, Muster")
                await _compare(setting, muster, docker, size)
    setting.findings.excess(ONE_BAR, "containers 1: Muster", "containers 1: bare API")
    setting.findings.ratio(EIGHT_BAR, "containers 8: Muster", "containers 8: bare API")


async def _compare(setting: Setting, muster: Fleet, docker: aiodocker.Docker, size: int) -> None:
    ours, bare, directory = [], [], setting.scratch.fresh("stamps")
    for turn in range(setting.repeats(12, 4) + 1):
        floor = await _bare(docker, directory / f"bare{turn}", size)
        measured = await _muster(muster, directory / f"muster{turn}", size)
        if turn:
            bare.append(floor)
            ours.append(measured)
    setting.findings.take(f"containers {size}: bare API", bare, "ms")
    setting.findings.take(f"containers {size}: Muster", ours, "ms")


async def _bare(docker: aiodocker.Docker, directory: Path, size: int) -> float:
    """Milliseconds until the last program runs."""
    await asyncio.to_thread(directory.mkdir)
    host = {"NetworkMode": "host", "Binds": [f"{directory}:{STAMPS}"]}
    config: dict[str, Any] = {"Image": IMAGE, "Cmd": ["/stamp", f"{STAMPS}/all"], "HostConfig": host}
    containers: list[aiodocker.containers.DockerContainer] = []

    async def one() -> None:
        container = await docker.containers.create(config)
        containers.append(container)
        await container.start()

    began = time.time_ns()
    async with asyncio.timeout(CALL_WITHIN):
        await asyncio.gather(*(one() for _ in range(size)))
        for container in containers:
            await container.wait()
            await container.delete()
    return _last(directory, began, size)


async def _muster(muster: Fleet, directory: Path, size: int) -> float:
    await asyncio.to_thread(directory.mkdir)
    role = Role(
        count=size,
        image=IMAGE,
        pull=PullPolicy.NEVER,
        command=("/stamp", f"{STAMPS}/all"),
        mounts=(Mount(source=str(directory), target=STAMPS, read_only=False),),
        resources=Resources(cpu_millis=100),
    )
    began = time.time_ns()
    job = await muster.client.submit(JobSpec(name="bench", roles=(role,)))
    await muster.ended(job.id)
    return _last(directory, began, size)


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
    async with ended_at_exit() as programs:
        command = ["dockerd", *places, "--pidfile", directory / "docker.pid", *network]
        programs.append(start(command, directory / "dockerd.log"))
        async with asyncio.timeout(READY_WITHIN):
            while not socket.exists():
                await asyncio.sleep(0.05)
        async with connected(socket) as docker:
            await _import_image(docker, scratch)
        yield socket
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
