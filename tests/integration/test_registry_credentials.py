"""Credentials from `muster secrets set --kind registry` to the pull of an image, with a real coordinator and Docker."""

import json
import platform
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest

from muster.cli.local.fleet import client_of
from muster.client.client import Client
from muster.domain.data.kept.pull import PullStep, PullView
from muster.domain.fleet.secret import SecretKind
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.job import JobSpec, Role
from tests.contract.secret_places import having
from tests.docker_daemon import docker_socket, request
from tests.image_registry import Registry, registry
from tests.integration.jobs import shell
from tests.integration.programs import agent, coordinator

__all__ = ["docker_socket"]

pytestmark = pytest.mark.docker

PASSWORD = "password-of-the-team"


@pytest.fixture
def images() -> Iterator[Registry]:
    with registry() as served:
        # It ends with exit code 126, and needs nothing in its image.
        program = files("agent.runtimes.docker") / "secret_env_program" / f"secret-env-{platform.machine()}"
        served.offer(program.read_bytes())
        served.login = ("puller", PASSWORD)
        yield served


async def ended(client: Client, pull: PullView) -> PullView:
    """A pull, once nothing more comes of it."""
    while not pull.is_over:
        pull = await client.images.pulled(pull.id, revision=pull.revision)
    return pull


async def test_images_are_pulled_with_the_credentials_of_the_project_that_its_jobs_need_not_name(
    tmp_path: Path, memory: Path, images: Registry, docker_socket: Path
) -> None:
    image = f"{images.address}/team/app:1"
    spec = JobSpec(name="private", roles=(Role(image=image),), timeouts=shell("").timeouts)
    options = ("--docker-socket", str(docker_socket), "--secrets-dir", str(memory), "--log-level", "debug")
    async with (
        coordinator(tmp_path) as login,
        client_of(login) as client,
        agent(tmp_path, login, *options) as node,
    ):
        stranger = await client.jobs.wait((await client.jobs.submit(spec, queue_anyway=True)).id)
        values = {"server": images.address.encode(), "username": b"puller", "password": PASSWORD.encode()}
        refused = await ended(client, await client.images.pull(image))
        await client.secrets.set("team", values, kind=SecretKind.REGISTRY)
        pulled = await ended(client, await client.images.pull(image, nodes=["alone"]))
        member = await client.jobs.wait((await client.jobs.submit(spec)).id)
    request(docker_socket, "DELETE", f"/images/{image}?force=1")
    assert list(memory.iterdir()) == []  # noqa: ASYNC240 - nobody waits; for a pull nothing is written
    assert stranger.failure is not None
    assert stranger.failure.kind is FailureKind.IMAGE
    assert "the project has no credentials for" in stranger.failure.message
    assert [(each.step, each.digest) for each in refused.nodes] == [(PullStep.FAILED, "")]
    assert "the project has no credentials for" in refused.nodes[0].why
    assert [(each.node, each.step, each.digest) for each in pulled.nodes] == [
        ("alone", PullStep.PULLED, *images.manifests)
    ]
    assert member.failure is not None
    assert [(each.image, each.digest) for each in member.images] == [(image, *images.manifests)]
    assert member.failure.exit is not None
    assert member.failure.exit.code == 126
    assert member.failure.log_tail == ("muster: too few arguments",)
    assert having(tmp_path, [PASSWORD.encode()]) == []
    assert PASSWORD.encode() not in node.logged
    assert PASSWORD not in json.dumps(str(member))
