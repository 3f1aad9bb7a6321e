"""A coordinator and an agent of one machine as programs, which speak unencrypted and know each other by a token.

The coordinator's state is in `coordinator`, the agent's in `node`, both below one directory.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from muster.client.client import Client
from muster.client.endpoint import Login
from muster.rpc.channel import Credentials
from muster.trust.files import read_secret
from tests.integration.parts import place_new_database

ROOT = Path(__file__).parents[2]
PORTS = range(30_180, 30_200)
"""Ports of the agent."""
READY_WITHIN = 60.0


@dataclass
class Coordinator:
    """One that serves."""

    login: Login
    program: asyncio.subprocess.Process

    async def says(self, words: bytes) -> bytes:
        """All that it logs up to the line with these words."""
        return await _said(self.program, words)

    async def killed(self) -> None:
        """End it without a chance to write anything down."""
        self.program.kill()
        await self.program.wait()


@asynccontextmanager
async def coordinator(directory: Path, listen: str = "127.0.0.1:0") -> AsyncIterator[Login]:
    """A coordinator without nodes, ended in order."""
    async with coordinator_program(directory, listen) as running:
        yield running.login


@asynccontextmanager
async def coordinator_program(
    directory: Path, listen: str = "127.0.0.1:0", *options: str, before: Sequence[str] = ()
) -> AsyncIterator[Coordinator]:
    """A `coordinator` for whoever kills it or reads its log; `before`: words that start it, as of another program."""
    state = directory / "coordinator"
    place_new_database(state)
    program = await _started(
        "coordinator", "--local", "--state", str(state), "--listen", listen, *options, before=before
    )
    try:
        served = (await _said(program, b"coordinator serves")).decode()
        address = served.rpartition("address=")[2].split()[0]
        inside = Path(f"/proc/{program.pid}/root") / state.relative_to("/")
        yield Coordinator(Login(address=address, token=read_secret(inside / "local-token")), program)
    finally:
        if program.returncode is None:
            program.terminate()
        await program.communicate()


@dataclass
class Agent:
    """One that runs, or has run."""

    logged: bytes
    """Until it ran; once it has ended, all of it."""


@asynccontextmanager
async def agent(
    directory: Path, login: Login, *options: str, ending: signal.Signals = signal.SIGTERM
) -> AsyncIterator[Agent]:
    """A node with processes, and with containers if the options say where Docker is; ended in some way."""
    program = await _started(
        *("agent", "--coordinator", login.address, "--token-file", str(directory / "coordinator" / "local-token")),
        *("--state", str(directory / "node"), "--name", "alone", "--address", "127.0.0.1"),
        *("--ports", f"{PORTS.start}-{PORTS.stop - 1}", "--gpu-provider", "fake:1xH100"),
        *("--processes", "--job-user", "none", *options),
        *(() if "--docker-socket" in options else ("--no-docker",)),
    )
    try:
        it = Agent(await _said(program, b"agent runs"))
        yield it
    finally:
        program.send_signal(ending)
        _, rest = await program.communicate()
    it.logged += rest


def runs(process: psutil.Process) -> bool:
    """Whether it is there, and not only waits to be taken note of by the machine's first process."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def _started(module: str, *words: str, before: Sequence[str] = ()) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *before, sys.executable, "-m", module, *words, cwd=ROOT, stderr=asyncio.subprocess.PIPE
    )


async def _said(program: asyncio.subprocess.Process, words: bytes) -> bytes:
    """All that a program logs up to the line with these words."""
    assert program.stderr is not None
    said = b""
    while words not in said:
        line = await program.stderr.readline()
        assert line, f"the program ended: {said.decode()}"
        said += line
    return said


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A coordinator of a fleet as a program, with both doors open."""

    pid: int
    clients: str
    authority: bytes
    admin_token: str
    log: Path

    def memory(self) -> int:
        """MiB that it has in memory."""
        return int(psutil.Process(self.pid).memory_info().rss) >> 20

    def client(self, token: str | None = None) -> Client:
        """Whoever has that token; the admin otherwise."""
        return Client(self.clients, Credentials(authority=self.authority, token=token or self.admin_token))


@asynccontextmanager
async def open_coordinator(directory: Path) -> AsyncIterator[Open]:
    """A coordinator that speaks TLS, ended in order."""
    state, ready, log = directory / "coordinator", directory / "ready", directory / "coordinator.log"
    words = ("--state", str(state), "--listen", "127.0.0.1:0", "--listen-agents", "127.0.0.1:0")
    with log.open("ab") as output:
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "coordinator", *words, "--ready-file", str(ready)),
            cwd=ROOT,
            stdout=output,
            stderr=output,
        )
    try:
        async with asyncio.timeout(READY_WITHIN):
            while not ready.exists():
                assert program.returncode is None, log.read_text()
                await asyncio.sleep(0.05)
        yield Open(
            pid=program.pid,
            clients=ready.read_text().split()[0],
            authority=(state / "trust" / "authority.pem").read_bytes(),
            admin_token=read_secret(state / "admin-token"),
            log=log,
        )
    finally:
        program.terminate()
        await program.communicate()
