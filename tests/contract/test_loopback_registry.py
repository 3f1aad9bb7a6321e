"""How a real engine pulls images through its node, from a real registry with a login and from one that lies."""

import asyncio
import base64
import http.client
import json
import logging
import random
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from agent.data.layers.files import LayerFiles
from agent.data.layers.messages import ImageSource, PullWanted
from agent.data.layers.mover import LayerMover
from agent.data.mover.mover import Mover
from agent.runtimes.docker.images.agreement import ImageTerms
from agent.runtimes.docker.images.loopback import PullsThroughNode
from agent.runtimes.docker.runtime import Confines, DockerRuntime
from agent.secrets.store import ExecutionSecrets
from muster.domain.fleet.secret import DeliveredSecret, SecretKind
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import PullPolicy, Role
from tests.contract.docker_trials import assigned, prepared
from tests.contract.secret_places import having, programs_with
from tests.docker_daemon import request
from tests.docker_registry import LOGIN, DockerRegistry, docker_registry, pushed
from tests.image_registry import Registry, registry

pytestmark = pytest.mark.docker

USER, PASSWORD = LOGIN
NOISE = random.Random(2).randbytes(3 << 20)


class Node:
    """A node with a layer cache, whose engine may be that of others, too."""

    def __init__(self, socket: Path, directory: Path, name: str, mover: Mover | None = None) -> None:
        self._socket = socket
        self._directory = directory / name
        self._directory.mkdir()
        self.layers = self._directory / "layers"
        self._through = PullsThroughNode(LayerMover(self.layers, 0, mover))
        self.said: list[str] = []

    @asynccontextmanager
    async def runtime(self, *secrets: DeliveredSecret) -> AsyncIterator[DockerRuntime]:
        async def ask(execution: ExecutionId) -> tuple[DeliveredSecret, ...]:
            del execution
            return secrets

        terms = ImageTerms(through=self._through)
        store = ExecutionSecrets(ask=ask)
        runtime = DockerRuntime(self._socket, f"test-{self._directory.name}", Confines(min_free=0), store, images=terms)
        try:
            yield runtime
        finally:
            await runtime.close()

    async def prepare(self, image: str, *secrets: DeliveredSecret) -> None:
        """Prepare an execution with an image."""
        async with self.runtime(*secrets) as runtime:
            assignment = assigned(Role(image=image, pull=PullPolicy.MISSING, command=("/content",)))
            async with prepared(runtime, self._directory, assignment, progress=self.said.append):
                pass

    def kept(self) -> list[Path]:
        """Files of layers and of what has begun to come."""
        return [path for part in ("objects", "parts") for path in (self.layers / part).rglob("*") if path.is_file()]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerRegistry]:
    with docker_registry(tmp_path_factory.mktemp("registry")) as served:
        yield served


@pytest.fixture
def images() -> Iterator[Registry]:
    with registry() as served:
        yield served


def login(server: str, password: str = PASSWORD) -> DeliveredSecret:
    values = {"server": server.encode(), "username": USER.encode(), "password": password.encode()}
    return DeliveredSecret(name="team", kind=SecretKind.REGISTRY, values=values)


def names(engine: Path, server: str) -> list[str]:
    """All names by which an engine knows images of a registry."""
    listed = json.loads(request(engine, "GET", "/images/json"))
    known = [name for each in listed for key in ("RepoTags", "RepoDigests") for name in each[key] or ()]
    port = server.rpartition(":")[2]
    return sorted(name for name in known if port in name)


def forget(engine: Path, server: str) -> None:
    """Have an engine forget all images of a registry."""
    for name in names(engine, server):
        with suppress(OSError):  # it has gone with another one
            request(engine, "DELETE", f"/images/{name}?force=1")


async def test_a_second_pull_takes_nothing_from_the_registry_and_no_password_is_left(
    docker_socket: Path, tmp_path: Path, real: DockerRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    name = f"{real.address}/team/app:1"
    pinned = pushed(docker_socket, name, {"content": b"#!", "noise": NOISE})
    node, secret = Node(docker_socket, tmp_path, "a"), login(real.address)
    forget(docker_socket, real.address)
    try:
        await node.prepare(pinned, secret)
        assert names(docker_socket, real.address) == [f"{real.address}/team/app:digest-{pinned[-64:]}"]
        asked, given = real.asked(), real.blobs_given()
        assert len(given) == len(set(given)) == 2
        layer = max(node.kept(), key=lambda path: path.stat().st_size).name
        await node.prepare(pinned, secret)
        forget(docker_socket, real.address)
        await node.prepare(pinned, secret)
        assert real.asked() == asked
        forget(docker_socket, real.address)
        await node.prepare(name, secret)
        assert names(docker_socket, real.address) == [name]
        assert real.blobs_given().count(f"sha256:{layer}") == 1, (
            "the engine asks for more where it asks what a tag means"
        )
    finally:
        forget(docker_socket, real.address)
    assert node.said[0] == f"pulling {pinned}"
    assert not having(tmp_path, [PASSWORD.encode()])
    assert PASSWORD not in caplog.text


async def test_whoever_has_no_password_of_a_pull_gets_nothing_and_a_pull_gets_its_own_image_alone(
    tmp_path: Path, images: Registry
) -> None:
    digest = images.offer(b"one")
    other = images.offer(b"two")
    mover = LayerMover(tmp_path, 0)
    wanted = PullWanted(
        source=ImageSource(host=images.address, path="team/app"), reference=digest, architecture="amd64", project=""
    )
    async with mover.opened(wanted) as pull:
        host, _, rest = pull.name.partition("/")
        repository = f"http://{host}/v2/{rest.partition('@')[0]}"

        async def status(path: str, user: str = pull.user, password: str = pull.password) -> int:
            return await asyncio.to_thread(_status, path, user, password)

        assert await status(f"{repository}/manifests/{digest}") == 200
        for blob in pull.blobs:
            assert await status(f"{repository}/blobs/sha256:{blob.digest}") == 200
        assert await status(f"{repository}/manifests/{digest}", password="wrong") == 401
        assert await status(f"{repository}/manifests/{digest}", user="nobody") == 401
        assert await status(f"{repository}/manifests/{other}") == 404
        foreign = next(blob for blob in images.blobs if blob[7:] not in {each.digest for each in pull.blobs})
        assert await status(f"{repository}/blobs/{foreign}") == 404
        assert await status(f"http://{host}/v2/elsewhere/app/manifests/{digest}") == 404
        assert await status(f"{repository}/manifests/../../x") == 404
        assert pull.password not in str(pull)
        assert not programs_with("cmdline", pull.password.encode()) | programs_with("environ", pull.password.encode())
    assert pull.given is not None


async def test_a_blob_that_does_not_match_its_digest_is_refused_and_nothing_of_it_stays(
    docker_socket: Path, tmp_path: Path, images: Registry
) -> None:
    digest = images.offer(b"one", noise=1 << 19)
    layer = max(images.blobs, key=lambda blob: len(images.blobs[blob]))
    right = images.blobs[layer]
    images.blobs[layer] = right[:-1] + bytes([right[-1] ^ 1])
    node = Node(docker_socket, tmp_path, "a")
    with pytest.raises(ExecutionError, match="holds something else") as caught:
        await node.prepare(f"{images.address}/team/app@{digest}")
    assert caught.value.kind is FailureKind.IMAGE
    assert not names(docker_socket, images.address)
    assert layer[7:] not in {path.name for path in node.kept()}


async def test_what_is_wrong_is_never_given_whole_and_comes_anew(tmp_path: Path, images: Registry) -> None:
    digest = images.offer(b"one", noise=3 << 20)
    layer = max(images.blobs, key=lambda blob: len(images.blobs[blob]))
    right = images.blobs[layer]
    images.blobs[layer] = right[:-1] + bytes([right[-1] ^ 1])
    source = ImageSource(host=images.address, path="team/app")
    wanted = PullWanted(source=source, reference=digest, architecture="amd64", project="")
    mover = LayerMover(tmp_path, 0)

    async def given() -> bytes:
        async with mover.opened(wanted) as pull:
            host, _, rest = pull.name.partition("/")
            url = f"http://{host}/v2/{rest.partition('@')[0]}/blobs/{layer}"
            return await asyncio.to_thread(_given, url, pull.user, pull.password)

    with pytest.raises(http.client.IncompleteRead):
        await given()
    files = LayerFiles(tmp_path)
    assert files.kept(layer[7:]) is None
    images.blobs[layer] = right
    assert await given() == right
    kept = files.kept(layer[7:])
    assert kept is not None
    kept.chmod(0o600)
    kept.write_bytes(bytes(len(right)))
    with pytest.raises(http.client.IncompleteRead):
        await given()
    assert await given() == right


async def test_where_a_node_can_give_nothing_the_engine_pulls_directly_and_the_journal_says_so(
    docker_socket: Path, tmp_path: Path, images: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    images.offer(b"one")
    node = Node(docker_socket, tmp_path, "a", Mover(("false",), pause=0))
    try:
        await node.prepare(f"{images.address}/team/app:1")
        assert names(docker_socket, images.address)[0] == f"{images.address}/team/app:1"
    finally:
        forget(docker_socket, images.address)
    assert "the engine pulls an image directly" in caplog.text


async def test_a_wrong_login_is_told_in_the_words_of_the_engine(
    docker_socket: Path, tmp_path: Path, real: DockerRegistry
) -> None:
    node = Node(docker_socket, tmp_path, "a")
    with pytest.raises(ExecutionError, match="the project's credentials for") as caught:
        await node.prepare(f"{real.address}/team/app@sha256:{'0' * 64}", login(real.address, "wrong"))
    assert "wrong" not in str(caught.value)


def _given(url: str, user: str, password: str) -> bytes:
    shown = base64.b64encode(f"{user}:{password}".encode()).decode()
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Authorization": f"Basic {shown}"})) as answer:
        return bytes(answer.read())


def _status(url: str, user: str, password: str) -> int:
    try:
        _given(url, user, password)
    except urllib.error.HTTPError as error:
        return error.code
    return 200
