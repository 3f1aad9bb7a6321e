"""How images come from a registry that wants to know who asks."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.core.launching.handover import RegistryLogin
from agent.runtimes.docker.runtime import Confines, DockerRuntime
from agent.secrets.store import ExecutionSecrets
from muster.domain.fleet.secret import DeliveredSecret, SecretKind
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import PullPolicy, Role
from tests.contract.docker_trials import assigned, prepared
from tests.contract.secret_places import having
from tests.docker_daemon import request
from tests.image_registry import Registry, registry

pytestmark = pytest.mark.docker

PASSWORD = "pässword:of the team"
HOME_OF_DOCKER = Path("~/.docker").expanduser()


@pytest.fixture
def images() -> Iterator[Registry]:
    with registry() as served:
        served.offer(b"#!")
        served.login = ("puller", PASSWORD)
        yield served


@pytest.fixture
def name(images: Registry, docker_socket: Path) -> Iterator[str]:
    name = f"{images.address}/team/app:1"
    yield name
    found = request(docker_socket, "GET", f'/images/json?filters={{"reference":["{name}"]}}')
    if json.loads(found):
        request(docker_socket, "DELETE", f"/images/{name}")


def credentials(server: str, password: str = PASSWORD, username: str = "puller") -> DeliveredSecret:
    values = {"server": server.encode(), "username": username.encode(), "password": password.encode()}
    return DeliveredSecret(name=f"of-{username}", kind=SecretKind.REGISTRY, values=values)


class Project:
    """What the coordinator has for the executions of one project, and how often it was asked."""

    def __init__(self, *secrets: DeliveredSecret) -> None:
        self._secrets = secrets
        self.asked = 0

    async def ask(self, execution: ExecutionId) -> tuple[DeliveredSecret, ...]:
        assert execution
        self.asked += 1
        return self._secrets

    async def prepare(self, socket: Path, directory: Path, image: str, pull: PullPolicy = PullPolicy.MISSING) -> None:
        store = ExecutionSecrets(ask=self.ask)
        runtime = DockerRuntime(socket, f"test-{directory.name}", Confines(min_free=0), store)
        try:
            async with prepared(runtime, directory, assigned(Role(image=image, pull=pull))):
                pass
        finally:
            await runtime.close()


async def test_an_image_is_pulled_with_the_credentials_of_the_project(
    docker_socket: Path, tmp_path: Path, images: Registry, name: str
) -> None:
    other, own = credentials("registry.example.org", "unused", "other"), credentials(f"https://{images.address}/v2/")
    await Project(other, own).prepare(docker_socket, tmp_path, name)
    assert json.loads(request(docker_socket, "GET", f"/images/{name}/json"))["RepoTags"] == [name]
    assert not having(HOME_OF_DOCKER, [PASSWORD.encode()])


async def test_an_image_is_pulled_on_an_order_with_its_login_and_counts_as_pulled_by_the_agent(
    docker_socket: Path, tmp_path: Path, images: Registry, name: str
) -> None:
    said: list[str] = []
    runtime = DockerRuntime(docker_socket, f"test-{tmp_path.name}", Confines(min_free=0))
    try:
        with pytest.raises(ExecutionError, match="the project has no credentials for"):
            await runtime.pull_image(name, None, said.append)
        login = RegistryLogin(username="puller", password=PASSWORD)
        there = await runtime.pull_image(name, login, said.append)
        [told] = runtime.images.told()
    finally:
        await runtime.close()

    assert (there.digest, there.bytes > 0) == (*images.manifests, True)
    assert (told.id, told.names, said[0]) == (there.id, (name,), f"pulling {name}")
    assert not having(HOME_OF_DOCKER, [PASSWORD.encode()])


async def test_credentials_for_a_part_of_a_registry_outweigh_those_for_all_of_it(
    docker_socket: Path, tmp_path: Path, images: Registry, name: str
) -> None:
    project = Project(credentials(images.address, "wrong"), credentials(f"{images.address}/team"))
    await project.prepare(docker_socket, tmp_path, name)


@pytest.mark.parametrize(
    ("secrets", "words"),
    [
        ((), "the project has no credentials for"),
        (("wrong",), "the project's credentials for"),
    ],
)
async def test_a_registry_that_lets_nobody_in_is_named(
    docker_socket: Path, tmp_path: Path, images: Registry, secrets: tuple[str, ...], words: str
) -> None:
    project = Project(*(credentials(images.address, password) for password in secrets))
    with pytest.raises(ExecutionError, match=words) as caught:
        await project.prepare(docker_socket, tmp_path, f"{images.address}/team/app:1")
    assert caught.value.kind is FailureKind.IMAGE
    assert images.address in str(caught.value)
    assert "wrong" not in str(caught.value)


async def test_the_coordinator_is_asked_only_when_an_image_is_pulled(
    docker_socket: Path, tmp_path: Path, images: Registry, name: str
) -> None:
    project = Project(credentials(images.address))
    await project.prepare(docker_socket, tmp_path, name)
    assert project.asked == 1
    await project.prepare(docker_socket, tmp_path, name)
    assert project.asked == 1
    await project.prepare(docker_socket, tmp_path, name, PullPolicy.ALWAYS)
    assert project.asked == 2
