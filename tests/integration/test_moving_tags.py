"""A tag that moves in its registry while a job goes on, with a real coordinator, agent and engine."""

import platform
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from importlib.resources import files
from pathlib import Path

import pytest

from muster.cli.local.fleet import client_of
from muster.client.client import Client
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec, PullPolicy, Role
from muster.domain.jobs.restart import RestartPolicy
from tests.docker_daemon import docker_socket, request
from tests.image_registry import Registry, registry
from tests.integration.jobs import shell
from tests.integration.programs import agent, coordinator

__all__ = ["docker_socket"]

pytestmark = pytest.mark.docker


@pytest.fixture
def images() -> Iterator[Registry]:
    with registry() as served:
        # It ends with exit code 126, and needs nothing in its image.
        program = files("agent.runtimes.docker") / "secret_env_program" / f"secret-env-{platform.machine()}"
        served.offer(program.read_bytes())
        yield served


async def second_end(client: Client, job: JobId) -> None:
    """Wait until the second attempt is over; the third one waits for its pause."""
    async for view in client.jobs.watch(job):
        if len(view.attempts) > 1 and view.attempts[1].failure is not None:
            return


async def test_all_ranks_and_attempts_run_what_the_tag_meant_at_first(
    tmp_path: Path, images: Registry, docker_socket: Path
) -> None:
    image, [first] = f"{images.address}/team/app:1", images.manifests
    role = Role(image=image, pull=PullPolicy.ALWAYS, count=2)
    again = RestartPolicy(limit=2, backoff=timedelta(seconds=5))
    spec = JobSpec(name="moves", roles=(role,), restarts=again, max_per_node=1, timeouts=shell("").timeouts)
    options = ("--docker-socket", str(docker_socket), "--local-nodes", "2")
    async with coordinator(tmp_path) as login, client_of(login) as client, agent(tmp_path, login, *options):
        submitted = await client.jobs.submit(spec, queue_anyway=True)
        await second_end(client, submitted.id)
        second = images.offer(b"no program")
        request(docker_socket, "DELETE", f"/images/{image}?force=1")
        ended = await client.jobs.wait(submitted.id)
        other = await client.jobs.wait(
            (await client.jobs.submit(replace(spec, name="later", restarts=RestartPolicy()))).id
        )
    for digest in (first, second):
        with suppress(OSError):  # it has gone with its tag
            request(docker_socket, "DELETE", f"/images/{images.address}/team/app@{digest}?force=1")
    failures = [each.failure for each in ended.attempts]
    assert [each.exit and each.exit.code for each in failures if each is not None] == [126, 126, 126], failures
    assert [(each.image, each.digest) for each in ended.images] == [(image, first)]
    assert [(each.image, each.digest) for each in other.images] == [(image, second)]
