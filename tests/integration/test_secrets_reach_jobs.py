"""Secrets from `muster secrets set` to user code, with a real coordinator and a real agent: used, masked, gone."""

import asyncio
import os
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from muster.cli.local.fleet import client_of
from muster.client.client import Client
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.restart import RestartPolicy
from muster.domain.jobs.secret_use import SecretUse
from tests.contract.secret_places import digest, having, programs_with
from tests.integration.jobs import shell
from tests.integration.programs import agent, coordinator

TOKEN = b"t0ken-of-the-test-cGFzcw"
KEY = b"-----BEGIN KEY-----\nbGluZSBvbmUgb2YgaXQ\n-----END KEY-----\n"
USES = (
    SecretUse(secret="wandb", env={"WANDB_API_KEY": "key"}),
    SecretUse(secret="deploy", directory="/muster/secrets/deploy"),
)


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that the node's user for jobs can get to, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="muster-secrets-") as directory:
        path = Path(directory)
        path.chmod(0o755)
        os.mkfifo(path / "go")
        (path / "go").chmod(0o666)
        yield path


def secrets_in(memory: Path) -> tuple[str, ...]:
    return "--secrets-dir", str(memory), "--log-level", "debug"


def job(script: str, *uses: SecretUse) -> JobSpec:
    role = Role(command=("/bin/sh", "-c", script), secrets=uses)
    return JobSpec(name="secretive", roles=(role,), timeouts=shell("").timeouts)


async def put(client: Client) -> None:
    await client.secrets.set("wandb", {"key": TOKEN})
    await client.secrets.set("deploy", {"key": KEY})


async def printed(client: Client, id_: str) -> list[bytes]:
    return [line.text async for line in client.jobs.logs(id_, follow=True)]


@pytest.mark.parametrize("job_user", ["65534:65534", "none"])
async def test_a_job_uses_its_secrets_and_nothing_of_them_is_left_anywhere(
    place: Path, memory: Path, job_user: str
) -> None:
    user = b"65534" if os.geteuid() == 0 and job_user != "none" else b"%d" % os.geteuid()
    script = (
        'echo "$WANDB_API_KEY"; echo "$WANDB_API_KEY" | cut -c 1-5; cat "$MUSTER_SECRETS_DIR/deploy/key"; '
        'id -u; echo $(wc -c < "$MUSTER_SECRETS_DIR/deploy/key"); read line < "$GO"; '
        'echo last "$WANDB_API_KEY" >&2; exit 3'
    )
    role = Role(command=("/bin/sh", "-c", script), secrets=USES, env={"GO": str(place / "go")})
    spec = JobSpec(name="secretive", roles=(role,), timeouts=shell("").timeouts)
    async with coordinator(place) as login, client_of(login) as client:
        await put(client)
        async with agent(place, login, *secrets_in(memory), "--job-user", job_user) as node:
            submitted = await client.jobs.submit(spec, queue_anyway=True)
            lines = []
            async for line in client.jobs.logs(submitted.id, follow=True):
                lines.append(line.text)
                if line.text == b"%d" % len(KEY):
                    break
            assert lines == [b"***", TOKEN[:5], b"***", b"***", b"***", user, b"%d" % len(KEY)]
            assert programs_with("cmdline", TOKEN) == set()
            assert programs_with("environ", TOKEN) == {"sh"}
            assert having(memory, [KEY]) != []
            await asyncio.to_thread((place / "go").write_text, "go\n")
            ended = await client.jobs.wait(submitted.id)
            assert (await printed(client, submitted.id))[-1] == b"last ***"
            view = str(await client.jobs.get(submitted.id))
        assert ended.failure is not None
        assert ended.failure.log_tail[-1] == "last ***"
        assert not [value for value in (TOKEN, KEY) if value.decode() in view]
    assert having(place, [TOKEN, KEY]) == []
    assert TOKEN not in node.logged


async def test_secrets_outlive_an_agent_that_is_killed_and_are_cleared_by_the_next(place: Path, memory: Path) -> None:
    script = f'echo "$WANDB_API_KEY"; read line < {place}/go; cat "$MUSTER_SECRETS_DIR/deploy/key"'
    async with coordinator(place) as login, client_of(login) as client:
        await put(client)
        async with agent(place, login, *secrets_in(memory), ending=signal.SIGKILL):
            submitted = await client.jobs.submit(job(script, *USES), queue_anyway=True)
            async for line in client.jobs.logs(submitted.id, follow=True):
                assert line.text == b"***"
                break
        assert having(memory, [KEY]) != []
        async with agent(place, login, *secrets_in(memory)):
            await asyncio.to_thread((place / "go").write_text, "go\n")
            ended = await client.jobs.wait(submitted.id)
            assert ended.phase is JobPhase.SUCCEEDED
            assert await printed(client, submitted.id) == [b"***"] * 4
        assert having(memory, [KEY]) == []
    assert having(place, [TOKEN, KEY]) == []


async def test_the_next_attempt_gets_the_values_that_there_are_then(place: Path, memory: Path) -> None:
    script = f'echo "$WANDB_API_KEY" | sha256sum; [ "$MUSTER_ATTEMPT" = 2 ] || {{ read line < {place}/go; exit 1; }}'
    spec = replace(job(script, USES[0]), restarts=RestartPolicy(limit=1))
    async with coordinator(place) as login, client_of(login) as client:
        await put(client)
        async with agent(place, login, *secrets_in(memory)):
            submitted = await client.jobs.submit(spec, queue_anyway=True)
            async for line in client.jobs.logs(submitted.id, follow=True):
                assert line.text == digest(TOKEN + b"\n")
                break
            await client.secrets.set("wandb", {"key": b"another"}, replace=True)
            await asyncio.to_thread((place / "go").write_text, "go\n")
            assert (await client.jobs.wait(submitted.id)).phase is JobPhase.SUCCEEDED
            assert await printed(client, submitted.id) == [digest(b"another\n")]


async def test_what_is_left_of_executions_that_ended_without_an_agent_is_swept(place: Path, memory: Path) -> None:
    async with coordinator(place) as login, client_of(login) as client:
        await put(client)
        async with agent(place, login, *secrets_in(memory), ending=signal.SIGKILL):
            submitted = await client.jobs.submit(job("sleep 1000", *USES), queue_anyway=True)
            async for view in client.jobs.watch(submitted.id):
                if view.phase is JobPhase.RUNNING:
                    break
        await client.jobs.stop(submitted.id)
        async with agent(place, login, *secrets_in(memory)):
            await client.jobs.wait(submitted.id)
        assert having(memory, [KEY]) == []


async def test_a_secret_that_was_removed_meanwhile_fails_the_job_and_is_named(place: Path, memory: Path) -> None:
    async with coordinator(place) as login, client_of(login) as client:
        await put(client)
        submitted = await client.jobs.submit(job("true", *USES), queue_anyway=True)
        await client.secrets.remove("deploy")
        async with agent(place, login, *secrets_in(memory)):
            ended = await client.jobs.wait(submitted.id)
    assert ended.failure is not None
    assert ended.failure.kind is FailureKind.INVALID_OPTION
    assert "deploy" in ended.failure.message
