"""A host of Muster that the stock programs of OpenSSH reach: an execution of a fleet that runs for a whole module."""

import asyncio
import fcntl
import os
import pty
import struct
import sys
import termios
import threading
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from muster.cli.local.ssh.client_config import SshHostsSettings, config_text, known_hosts_file
from muster.domain.jobs.view import JobView
from muster.trust.files import read_secret
from tests.integration.attaching import AttachingFleet, attaching_fleet
from tests.integration.programs import ROOT

WITHIN = 60.0
"""Seconds in which a program of a test ends."""
FLEET_WITHIN = 240.0
"""Seconds in which all programs of a fleet serve; each has a limit of its own."""

PROGRAM = (sys.executable, "-c", "from muster.cli.main import main; main()")

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Finished:
    """How a program ended."""

    code: int
    output: bytes
    errors: str


class SharedFleet:
    """A fleet in an event loop of its own, so that several tests have it one after the other."""

    def __init__(self, fleet: AttachingFleet, loop: asyncio.AbstractEventLoop) -> None:
        self.fleet = fleet
        self._loop = loop

    def does(self, work: Coroutine[None, None, T]) -> T:
        """What comes of work in its loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WITHIN)

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which programs find the fleet and us."""
        return {
            **os.environ,
            "MUSTER_COORDINATOR": self.fleet.address,
            "MUSTER_TOKEN": read_secret(self.fleet.state / "local-token"),
            "MUSTER_HOME": str(self.fleet.directory / "home"),
            "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", ""))),
        }


@contextmanager
def shared_fleet(directory: Path, ready_within: float = FLEET_WITHIN) -> Iterator[SharedFleet]:
    """Run a fleet beside the tests, until the context ends; raises TimeoutError where it is not ready in time."""
    ready: Future[SharedFleet] = Future()
    begun: Future[asyncio.AbstractEventLoop] = Future()
    over = asyncio.Event()

    async def run() -> None:
        begun.set_result(asyncio.get_running_loop())
        async with attaching_fleet(directory) as fleet:
            ready.set_result(SharedFleet(fleet, asyncio.get_running_loop()))
            await over.wait()

    def running() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    thread = threading.Thread(target=running, name="a shared fleet")
    thread.start()
    try:
        yield ready.result(ready_within)
    finally:
        with suppress(RuntimeError):  # it has ended by itself
            begun.result(WITHIN).call_soon_threadsafe(over.set)  # also where nobody waits for the fleet any more
        thread.join()


@contextmanager
def held_fifo(path: Path) -> Iterator[int]:
    """A new FIFO that is held open both ways, so that nobody who opens it has to wait for anybody; its descriptor."""
    os.mkfifo(path)
    descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


async def line_of(descriptor: int) -> str:
    """The next line of a FIFO, waited for by the event loop: a thread that waits could not be ended."""
    line = b""
    async with asyncio.timeout(WITHIN):
        while not line.endswith(b"\n"):
            await _readable(descriptor)
            line += os.read(descriptor, 1)
    return line.decode()


async def _readable(descriptor: int) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)


class SshHost:
    """The execution of one job, with settings by which `ssh` finds it."""

    def __init__(self, shared: SharedFleet, directory: Path, job: JobView, execution: Path) -> None:
        self.shared = shared
        self.job = job
        self.name = f"muster-{job.id}"
        self.execution = execution
        """The directory in which its commands begin."""
        self.config = directory / "config"
        self.said = directory / "said"
        """What `ssh` in the background has said."""
        keys = Path(shared.environment["MUSTER_HOME"]) / "ssh"
        self.config.write_text(
            config_text(SshHostsSettings(proxy=(*PROGRAM, "ssh-proxy"), known_hosts=known_hosts_file(keys)))
        )

    @asynccontextmanager
    async def started(self, *words: str, program: str = "ssh") -> AsyncIterator[Process]:
        """A program of OpenSSH that knows the host, until the context ends."""
        process = await asyncio.create_subprocess_exec(
            program,
            "-F",
            str(self.config),
            *words,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=self.shared.environment,
            limit=2**20,
        )
        try:
            async with asyncio.timeout(WITHIN):
                yield process
        finally:
            if process.returncode is None:
                process.kill()
            async with asyncio.timeout(WITHIN):
                await process.communicate()  # until whoever has its outputs has ended, too

    async def run(self, *words: str, given: bytes = b"", program: str = "ssh") -> Finished:
        """A program of OpenSSH to its end."""
        async with self.started(*words, program=program) as process:
            output, errors = await process.communicate(given)
            return Finished(code=process.returncode or 0, output=output, errors=errors.decode())

    async def ssh(self, line: str, *options: str, given: bytes = b"") -> Finished:
        """A command line there."""
        return await self.run(*options, self.name, line, given=given)

    async def piped(self, line: str, *, before: str = "") -> Finished:
        """A line of a shell here that ends with the words of one for the host."""
        return await self.other("bash", "-c", f"{before} ssh -F {self.config} {self.name} {line}")

    async def other(self, *words: str) -> Finished:
        """Another program to its end."""
        process = await asyncio.create_subprocess_exec(
            *words, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=self.shared.environment
        )
        try:
            async with asyncio.timeout(WITHIN):
                output, errors = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return Finished(code=process.returncode or 0, output=output, errors=errors.decode())

    @asynccontextmanager
    async def forwarding(self, *options: str) -> AsyncIterator[None]:
        """`ssh` in the background with these forwards, all of which are there; what it says is `said`."""
        control = self.config.with_name("control")
        master = ("-M", "-S", str(control), "-f", "-N", "-E", str(self.said), "-o", "ExitOnForwardFailure=yes")
        begun = await asyncio.create_subprocess_exec(  # no pipes, which the one in the background would keep open
            "ssh",
            "-F",
            str(self.config),
            *master,
            *options,
            self.name,
            stdin=DEVNULL,
            stdout=DEVNULL,
            stderr=DEVNULL,
            env=self.shared.environment,
        )
        async with asyncio.timeout(WITHIN):
            assert await begun.wait() == 0, self.said.read_text()
        try:
            yield
        finally:
            assert (await self.run("-S", str(control), "-O", "exit", self.name)).code == 0


class AtTerminal:
    """`ssh` with a terminal of its own, and somebody who sits there."""

    def __init__(self, process: Process, mine: int) -> None:
        self.process = process
        self._mine = mine
        self._seen = b""

    async def sees(self, words: bytes) -> bytes:
        """All that came up to these words."""
        async with asyncio.timeout(WITHIN):
            while words not in self._seen:
                await _readable(self._mine)
                self._seen += os.read(self._mine, 4096)
        before, _, self._seen = self._seen.partition(words)
        return before + words

    def types(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._mine, keys)

    def resizes(self, rows: int, columns: int) -> None:
        """Draw the window to another size."""
        resize(self._mine, rows, columns)

    async def ends(self) -> int:
        """The exit code."""
        async with asyncio.timeout(WITHIN):
            return await self.process.wait()


@asynccontextmanager
async def at_terminal(host: SshHost, *words: str, rows: int = 33, columns: int = 111) -> AsyncIterator[AtTerminal]:
    """Run `ssh` at a terminal of this size."""
    mine, theirs = pty.openpty()
    resize(mine, rows, columns)
    process = await asyncio.create_subprocess_exec(
        *("setsid", "--ctty", "--wait", "ssh", "-F", str(host.config), *words),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**host.shared.environment, "TERM": "xterm-256color"},
    )
    os.close(theirs)
    try:
        yield AtTerminal(process, mine)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        os.close(mine)


def resize(terminal: int, rows: int, columns: int) -> None:
    """Give a terminal its size."""
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@contextmanager
def ssh_host(shared: SharedFleet, directory: Path) -> Iterator[SshHost]:
    """A job that runs until the context ends, as a host."""
    job = shared.does(shared.fleet.running())
    found = shared.does(shared.fleet.client.attachments.run(job.id, ["pwd"]))
    try:
        yield SshHost(shared, directory, job, Path(found.output.decode().strip()))
    finally:
        shared.does(shared.fleet.client.jobs.stop(job.id))
        shared.does(shared.fleet.client.jobs.wait(job.id))
