"""One image for all ranks and attempts of a job, with a real engine, while its tag moves in the registry."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from agent.runtimes.docker.images.agreement import ImageTerms
from agent.runtimes.docker.runtime import Confines, DockerRuntime
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.image import FoundImage, ImagePass
from muster.domain.jobs.job import PullPolicy, Role
from tests.contract.docker_trials import assigned, prepared
from tests.docker_daemon import IMAGE, containers, inspected, request
from tests.image_registry import Registry, registry

pytestmark = pytest.mark.docker

MISSING, ALWAYS, NEVER = PullPolicy.MISSING, PullPolicy.ALWAYS, PullPolicy.NEVER


@pytest.fixture
def images() -> Iterator[Registry]:
    with registry() as served:
        yield served


@pytest.fixture
def name(images: Registry, docker_socket: Path) -> Iterator[str]:
    name = f"{images.address}/team/app:1"
    yield name
    for each in (name, *(f"{images.address}/team/app@{digest}" for digest in images.manifests)):
        with suppress(OSError):  # it was not pulled, or has gone with its tag
            request(docker_socket, "DELETE", f"/images/{each}?force=1")


class JobOfNodes:
    """What the coordinator says of one job; `waits`: how many questions it answers with nothing, first."""

    def __init__(self, socket: Path, directory: Path, waits: int = 0) -> None:
        self.found: FoundImage | None = None
        self.told: list[str] = []
        self._socket, self._directory, self._waits = socket, directory, waits

    def runtime(self) -> DockerRuntime:
        terms = ImageTerms(agree=self.agree)
        return DockerRuntime(self._socket, f"test-{self._directory.name}", Confines(min_free=0), images=terms)

    async def agree(self, execution: ExecutionId, found: FoundImage | None) -> ImagePass:
        assert execution
        if self._waits:
            self._waits -= 1
            return ImagePass()
        self.found = self.found or found
        return ImagePass(found=self.found, finds=True)

    async def image(self, name: str, pull: PullPolicy = MISSING) -> str:
        """The id of the image with which the next rank is prepared."""
        runtime = self.runtime()
        assignment = assigned(Role(image=name, pull=pull, command=("/content",)))
        try:
            async with prepared(runtime, self._directory, assignment, progress=self.told.append) as trial:
                await trial.arm()
                [found] = containers(self._socket, f"muster.execution={assignment.execution}")
                return str(inspected(self._socket, found["Id"])["Image"])
        finally:
            await runtime.close()


@pytest.mark.parametrize("pull", [MISSING, ALWAYS])
async def test_a_tag_that_moves_makes_no_difference(
    docker_socket: Path, tmp_path: Path, images: Registry, name: str, pull: PullPolicy
) -> None:
    first = images.offer(b"one")
    job = JobOfNodes(docker_socket, tmp_path)
    rank0 = await job.image(name, pull)
    assert job.found is not None
    assert job.found.digest == first
    images.offer(b"two")
    request(docker_socket, "DELETE", f"/images/{name}")
    assert await job.image(name, pull) == rank0
    assert await JobOfNodes(docker_socket, tmp_path).image(name, ALWAYS) != rank0
    assert await job.image(name, pull) == rank0, "the tag means something else on this node by now"


async def test_what_the_first_node_has_under_a_name_counts_for_all(
    docker_socket: Path, tmp_path: Path, images: Registry, name: str
) -> None:
    first = images.offer(b"one")
    own = await JobOfNodes(docker_socket, tmp_path).image(name)
    images.offer(b"two")
    asked = images.asked
    job = JobOfNodes(docker_socket, tmp_path)
    assert await job.image(name) == own
    assert job.found is not None
    assert (job.found.digest, job.found.id) == (first, own)
    assert images.asked == asked


async def test_a_node_waits_for_the_one_that_finds_out(
    docker_socket: Path, tmp_path: Path, images: Registry, name: str
) -> None:
    images.offer(b"one")
    job = JobOfNodes(docker_socket, tmp_path, waits=1)
    await job.image(name)
    assert job.told[0] == "waiting for another node of the job, which finds out which image it is"


async def test_an_image_from_no_registry_is_told_by_its_id(docker_socket: Path, tmp_path: Path) -> None:
    job = JobOfNodes(docker_socket, tmp_path)
    here = json.loads(request(docker_socket, "GET", f"/images/{IMAGE}/json"))["Id"]
    runtime = job.runtime()
    try:
        async with prepared(runtime, tmp_path, assigned(Role(image=IMAGE, command=("true",)))):
            assert job.found == FoundImage(image=IMAGE, id=here)
        job.found = FoundImage(image=IMAGE, id=f"sha256:{'0' * 64}")
        async with prepared(runtime, tmp_path, assigned(Role(image=IMAGE, command=("true",)))):
            pass
        job.found = FoundImage(image="nowhere:1", id=f"sha256:{'0' * 64}")
        with pytest.raises(ExecutionError, match="this node has none under that name") as caught:
            async with prepared(runtime, tmp_path, assigned(Role(image="nowhere:1", command=("true",)))):
                pass
        assert caught.value.kind is FailureKind.IMAGE
    finally:
        await runtime.close()


async def test_a_digest_that_the_registry_has_no_more_is_told_with_what_helps(
    docker_socket: Path, tmp_path: Path, images: Registry, name: str
) -> None:
    images.offer(b"one")
    job = JobOfNodes(docker_socket, tmp_path)
    job.found = FoundImage(image=name, digest=f"sha256:{'1' * 64}", id=f"sha256:{'2' * 64}")
    with pytest.raises(ExecutionError, match="pull: always") as caught:
        await job.image(name)
    assert caught.value.kind is FailureKind.IMAGE


async def test_nodes_do_not_ask_about_an_image_of_which_each_has_its_own(docker_socket: Path, tmp_path: Path) -> None:
    job = JobOfNodes(docker_socket, tmp_path)
    runtime = job.runtime()
    try:
        async with prepared(runtime, tmp_path, assigned(Role(image=IMAGE, pull=NEVER, command=("true",)))):
            assert job.found is None
    finally:
        await runtime.close()
