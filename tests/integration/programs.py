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

from muster.endpoint import Login
from muster.trust.files import read_secret

ROOT = Path(__file__).parents[2]
PORTS = range(30_180, 30_200)
"""Of the agent."""


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
    """As `coordinator`, for whoever kills it or reads its log; `before`: words that start it, as of another program."""
    state = directory / "coordinator"
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
