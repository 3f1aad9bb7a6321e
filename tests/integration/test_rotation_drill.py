"""The drill: the authority changes while a job runs and the coordinator's program is killed at every stage."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from muster.client.client import Client
from muster.domain.fleet.node import NodeState
from muster.domain.jobs.lifecycle import JobPhase
from muster.rpc.channel import Credentials
from muster.trust.files import read_secret
from tests.integration.jobs import shell
from tests.integration.programs import ROOT

WITHIN = 90.0


def free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]


@asynccontextmanager
async def program(log: Path, *words: str, ready: Path, token: str = "") -> AsyncIterator[asyncio.subprocess.Process]:
    """A program of ours that has said that it is ready."""
    ready.unlink(missing_ok=True)  # noqa: ASYNC240 - what only takes a moment
    env = {**os.environ, "MUSTER_JOIN_TOKEN": token}
    with log.open("ab") as output:
        running = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", *words, "--ready-file", str(ready)), cwd=ROOT, env=env, stderr=output, stdout=output
        )
    try:
        await until(lambda: there(ready))
        yield running
    finally:
        if running.returncode is None:
            running.send_signal(signal.SIGTERM)
        await running.wait()


async def there(file: Path) -> bool:
    return await asyncio.to_thread(file.exists)


async def until(answer: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WITHIN):
        while not await answer():  # noqa: ASYNC110 - nobody tells when
            await asyncio.sleep(0.1)


class Drill:
    """A coordinator whose program is killed and started again."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.clients, self._agents = (f"127.0.0.1:{port}" for port in free_ports())
        self._running: asyncio.subprocess.Process

    async def start(self, stack: AsyncExitStack) -> None:
        state = self._directory / "coordinator"
        words = ("--state", str(state), "--listen", self.clients, "--listen-agents", self._agents)
        log, ready = self._directory / "coordinator.log", self._directory / "coordinator-ready"
        self._running = await stack.enter_async_context(program(log, "coordinator", *words, ready=ready))

    async def killed(self, stack: AsyncExitStack) -> None:
        self._running.kill()
        await self._running.wait()
        await self.start(stack)

    def admin(self) -> Client:
        state = self._directory / "coordinator"
        authority = (state / "trust" / "authority.pem").read_bytes()
        return Client(self.clients, Credentials(authority=authority, token=read_secret(state / "admin-token")))

    async def moved(self, stage: str) -> bool:
        async with self.admin() as admin:
            status = await admin.authority.show()
        return status.stage == stage and not (status.waiting or status.away)


async def test_a_job_and_its_node_outlive_a_change_of_the_authority_with_a_coordinator_killed_at_each_stage(
    tmp_path: Path,
) -> None:
    drill, go = Drill(tmp_path), tmp_path / "go"
    async with AsyncExitStack() as stack:
        await drill.start(stack)
        async with drill.admin() as admin:
            token, _ = await admin.join_tokens.create()
        node = ("--name", "a", "--address", "127.0.0.1", "--ports", "31800-31819", "--gpu-provider", "fake:1xT4")
        kind = ("--no-docker", "--processes", "--job-user", "none", "--stop-on-exit")
        words = ("agent", "--coordinator", drill.clients, "--state", str(tmp_path / "a"), *node, *kind)
        await stack.enter_async_context(program(tmp_path / "a.log", *words, ready=tmp_path / "a-ready", token=token))

        async with drill.admin() as admin:

            async def is_ready() -> bool:
                return [each.state for each in await admin.nodes.list()] == [NodeState.READY]

            await until(is_ready)
            job = await admin.jobs.submit(shell(f"until [ -e {go} ]; do sleep 0.1; done"))

            async def is_running() -> bool:
                return (await admin.jobs.get(job.id)).phase is JobPhase.RUNNING

            await until(is_running)
            await admin.authority.rotate()
        await drill.killed(stack)
        await until(lambda: drill.moved("issuing"))
        await drill.killed(stack)
        assert await drill.moved("issuing")
        async with drill.admin() as admin:
            await admin.authority.finish()
        await drill.killed(stack)
        await until(lambda: drill.moved("steady"))
        async with drill.admin() as admin:
            go.touch()
            ended = await admin.jobs.wait(job.id)
            assert (ended.phase, len(ended.attempts)) == (JobPhase.SUCCEEDED, 1)
            assert len((await admin.authority.show()).authorities) == 1
