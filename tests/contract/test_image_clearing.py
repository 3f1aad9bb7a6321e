"""When images that were pulled go from a real engine: as its disk is short of space, or on an order."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agent.runtimes.docker.images.agreement import ImageTerms
from agent.runtimes.docker.images.pulled import IMAGE_UNUSED, PulledImages
from agent.runtimes.docker.runtime import Confines, DockerRuntime
from muster.domain.data.kept.image import ClearOutcome
from muster.domain.jobs.job import Role
from tests.contract.docker_trials import assigned, prepared
from tests.docker_daemon import IMAGE, request
from tests.image_registry import Registry, registry

pytestmark = pytest.mark.docker

ALL_OF_IT, NOTHING = 101, 0
"""Percent that is never free, so that the disk is short of space, and percent that always is."""


@pytest.fixture
def images() -> Iterator[Registry]:
    with registry() as served:
        served.offer(b"one")
        yield served


@pytest.fixture
def name(images: Registry, docker_socket: Path) -> Iterator[str]:
    name = f"{images.address}/team/app:1"
    yield name
    with suppress(OSError):  # it has gone
        request(docker_socket, "DELETE", f"/images/{name}?force=1")


class NodeWithImages:
    """A node whose time goes on as it is told."""

    def __init__(self, socket: Path, directory: Path, keep_free: int) -> None:
        self.now = 0.0
        self._socket, self._directory = socket, directory
        pulled = PulledImages(directory / "images.json", lambda: self.now)
        self._terms = ImageTerms(pulled=pulled, keep_free=keep_free)

    def runtime(self) -> DockerRuntime:
        return DockerRuntime(self._socket, f"test-{self._directory.name}", Confines(min_free=0), images=self._terms)

    async def prepare(self, name: str) -> None:
        """An execution with an image begins, and is over."""
        runtime = self.runtime()
        try:
            async with prepared(runtime, self._directory, assigned(Role(image=name, command=("/content",)))):
                pass
        finally:
            await runtime.close()

    def has(self, name: str) -> bool:
        listed = json.loads(request(self._socket, "GET", "/images/json"))
        return any(name in (each["RepoTags"] or []) for each in listed)


async def test_an_image_goes_that_nothing_has_used_for_an_hour_where_the_disk_is_short(
    docker_socket: Path, tmp_path: Path, name: str
) -> None:
    node = NodeWithImages(docker_socket, tmp_path, ALL_OF_IT)
    await node.prepare(name)
    node.now = IMAGE_UNUSED - 1
    await node.prepare(IMAGE)
    assert node.has(name)
    node.now = IMAGE_UNUSED
    await node.prepare(IMAGE)
    assert not node.has(name)
    assert node.has(IMAGE), "what the agent has not pulled stays"


async def test_an_image_stays_where_enough_is_free(docker_socket: Path, tmp_path: Path, name: str) -> None:
    node = NodeWithImages(docker_socket, tmp_path, NOTHING)
    await node.prepare(name)
    node.now = 2 * IMAGE_UNUSED
    await node.prepare(IMAGE)
    assert node.has(name)


async def test_an_image_stays_that_a_container_or_a_prepared_execution_uses(
    docker_socket: Path, tmp_path: Path, name: str
) -> None:
    node = NodeWithImages(docker_socket, tmp_path, ALL_OF_IT)
    runtime, role = node.runtime(), Role(image=name, command=("/content",))
    try:
        async with prepared(runtime, tmp_path, assigned(role)) as trial:
            node.now = 2 * IMAGE_UNUSED
            async with prepared(runtime, tmp_path / "other", assigned(Role(image=IMAGE, command=("true",)))):
                assert node.has(name), "it is prepared, and there is no container yet"
            await trial.arm()
            node.now = 4 * IMAGE_UNUSED
            await node.prepare(IMAGE)
            assert node.has(name), "there is a container by now, which another agent may have made"
    finally:
        await runtime.close()


async def test_an_order_takes_away_what_was_pulled_and_nobody_uses_and_what_there_is_is_told(
    docker_socket: Path, tmp_path: Path, name: str
) -> None:
    node = NodeWithImages(docker_socket, tmp_path, NOTHING)
    runtime = node.runtime()
    try:
        async with prepared(runtime, tmp_path, assigned(Role(image=name, command=("/content",)))):
            [told] = runtime.images.told()
            assert (name in told.names, told.bytes > 0) == (True, True)
            [held] = await runtime.images.clear_now([])
            assert (held.outcome, node.has(name)) == (ClearOutcome.IN_USE, True)
        async with runtime.images.preparing(f"{name}0"):
            [held] = await runtime.images.clear_now([told.id])
            assert held.outcome is ClearOutcome.IN_USE, "it is just being looked for"
        gone, unknown = await runtime.images.clear_now([name, IMAGE])
        assert (gone.outcome, gone.bytes, node.has(name)) == (ClearOutcome.REMOVED, told.bytes, False)
        assert (unknown.image, unknown.outcome) == (IMAGE, ClearOutcome.UNKNOWN)
        assert node.has(IMAGE), "what the agent has not pulled stays"
        assert list(runtime.images.told()) == []
    finally:
        await runtime.close()
