"""How images come to a node, from a registry that is there and from one that is not."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.runtimes.docker.images.pulling import PullProgress
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import PullPolicy, Role
from tests.contract.docker_place import DockerPlace
from tests.contract.docker_trials import assigned, prepared
from tests.docker_daemon import request
from tests.image_registry import Registry, registry

MIB = 1 << 20


@pytest.fixture
def images() -> Iterator[Registry]:
    with registry() as served:
        yield served


@pytest.fixture
def place(tmp_path: Path, docker_socket: Path) -> DockerPlace:
    return DockerPlace(tmp_path, docker_socket)


@pytest.fixture
def name(images: Registry, place: DockerPlace) -> Iterator[str]:
    name = f"{images.address}/team/app:1"
    yield name
    if request(place.socket, "GET", f'/images/json?filters={{"reference":["{name}"]}}') != b"[]\n":
        request(place.socket, "DELETE", f"/images/{name}")


async def said(place: DockerPlace, directory: Path, image: str, pull: PullPolicy) -> list[str]:
    """What is told while an execution is prepared."""
    progress: list[str] = []
    role = Role(image=image, pull=pull)
    async with (
        place.runtime() as runtime,
        prepared(runtime, directory, assigned(role), progress=progress.append),
    ):
        return progress


async def failure(place: DockerPlace, directory: Path, image: str, pull: PullPolicy) -> ExecutionError:
    with pytest.raises(ExecutionError) as caught:
        await said(place, directory, image, pull)
    return caught.value


@pytest.mark.docker
async def test_a_missing_image_is_pulled_with_its_progress(
    place: DockerPlace, tmp_path: Path, images: Registry, name: str
) -> None:
    images.offer(b"#!", noise=32 * MIB)
    told = await said(place, tmp_path, name, PullPolicy.MISSING)
    assert told[0] == f"pulling {name}"
    assert told[-1] == f"pulling {name} 100 %"
    percents = [int(line.split()[-2]) for line in told[1:]]
    assert percents == sorted(set(percents))
    assert percents[0] < 100


@pytest.mark.docker
@pytest.mark.parametrize("pull", list(PullPolicy))
async def test_the_registry_is_asked_about_an_image_that_is_there_only_if_always(
    place: DockerPlace, tmp_path: Path, images: Registry, name: str, pull: PullPolicy
) -> None:
    images.offer(b"one")
    await said(place, tmp_path, name, PullPolicy.MISSING)
    before = images.asked
    await said(place, tmp_path, name, pull)
    assert (images.asked > before) is (pull is PullPolicy.ALWAYS)


@pytest.mark.docker
async def test_a_missing_image_that_may_not_be_pulled_is_named(
    place: DockerPlace, tmp_path: Path, images: Registry, name: str
) -> None:
    images.offer(b"one")
    failed = await failure(place, tmp_path, name, PullPolicy.NEVER)
    assert failed.kind is FailureKind.IMAGE
    assert str(failed) == f"image {name} is not on the node, and pull is `never`; load it there or let it be pulled"
    assert images.asked == 0


@pytest.mark.docker
async def test_what_the_registry_does_not_have_is_named(place: DockerPlace, tmp_path: Path, name: str) -> None:
    failed = await failure(place, tmp_path, name, PullPolicy.MISSING)
    assert failed.kind is FailureKind.IMAGE
    assert name in str(failed)
    assert "manifest unknown" in str(failed)


@pytest.mark.docker
async def test_a_registry_that_is_not_there_is_named(place: DockerPlace, tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        name = f"127.0.0.1:{silent.getsockname()[1]}/app:1"
        failed = await failure(place, tmp_path, name, PullPolicy.MISSING)
    assert failed.kind is FailureKind.IMAGE
    assert "connection refused" in str(failed)


@pytest.mark.docker
async def test_an_image_for_another_processor_is_refused(
    place: DockerPlace, tmp_path: Path, images: Registry, name: str
) -> None:
    other = "amd64" if b'"Architecture":"aarch64"' in request(place.socket, "GET", "/info") else "arm64"
    images.offer(b"one", architecture=other)
    failed = await failure(place, tmp_path, name, PullPolicy.MISSING)
    assert failed.kind is FailureKind.IMAGE
    assert other in str(failed)


def test_progress_adds_up_the_layers_and_never_falls() -> None:
    progress = PullProgress()

    def layer(name: str, current: int, total: int) -> dict[str, object]:
        return {"id": name, "status": "Downloading", "progressDetail": {"current": current, "total": total}}

    news: list[dict[str, object]] = [
        {"status": "Pulling from team/app", "id": "1"},
        {"status": "Pulling fs layer", "progressDetail": {}, "id": "a"},
        layer("a", 50, 100),
        layer("b", 0, 100),  # a layer that nobody knew of would make it 25
        layer("b", 30, 100),
        {"status": "Download complete", "progressDetail": {}, "id": "a"},
        {"status": "Extracting", "progressDetail": {"current": 1, "total": 100}, "id": "a"},
        layer("b", 100, 100),
        {"status": "Status: Downloaded newer image"},
    ]
    assert [progress.percent(each) for each in news] == [0, 0, 50, 50, 50, 65, 65, 100, 100]
