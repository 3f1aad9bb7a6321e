"""Agents of a fleet with TLS, each with an engine of its own, that run one job: its image leaves the registry once."""

import asyncio
import random
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from muster.domain.fleet.access import Access
from muster.domain.jobs.job import JobSpec, Network, Resources, Role
from muster.domain.jobs.lifecycle import JobPhase
from tests.docker_daemon import BUSYBOX, daemon
from tests.image_registry import registry
from tests.integration.secured import joining, secured, until_ready

pytestmark = pytest.mark.docker

LIMIT = 120.0
NODES = ("gpu-1", "gpu-2")


async def test_the_layers_of_a_job_leave_the_registry_once_for_two_engines(docker_socket: Path, tmp_path: Path) -> None:
    with registry() as images, daemon() as second:
        images.offer_files({"bin/busybox": BUSYBOX.read_bytes(), "noise": random.Random(1).randbytes(6 << 20)})
        image = f"{images.address}/team/app:1"
        role = Role(count=2, image=image, command=("/bin/busybox", "true"), resources=Resources(cpu_millis=100))
        spec = JobSpec(name="train", project="vision", roles=(role,), max_per_node=1, network=Network.HOST)
        directory = tmp_path / "fleet"
        async with asyncio.timeout(LIMIT), secured(directory) as fleet, AsyncExitStack() as agents:
            for node, socket in zip(NODES, (docker_socket, second.socket), strict=True):
                options = ("--docker-socket", str(socket), "--keep-free", "0")
                await agents.enter_async_context(joining(fleet, node, await fleet.join_token(), *options))
            async with fleet.client() as admin:
                await until_ready(admin, *NODES)
            async with fleet.client(await fleet.user("anna", {"vision": Access.MEMBER})) as client:
                submitted = await client.jobs.submit(spec)
                ended = await client.jobs.wait(submitted.id)
                told = await client.jobs.get(submitted.id)
        journals = {node: (directory / f"{node}.log").read_text() for node in NODES}
    assert ended.phase is JobPhase.SUCCEEDED, (ended, journals)
    assert all("image pulled through this node" in each for each in journals.values()), journals
    layer, size = max(((name, len(blob)) for name, blob in images.blobs.items()), key=lambda blob: blob[1])
    assert size <= images.given[layer] <= 1.05 * size, journals
    assert [each.digest for each in told.images] == [*images.manifests]
