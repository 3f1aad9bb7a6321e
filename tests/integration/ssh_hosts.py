"""A host `muster-dev` that the stock programs of OpenSSH reach: an execution that is a directory of this machine."""

import asyncio
import os
import pty
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from muster.cli.local.ssh.client_config import SshSettings, config_text, known_hosts_file
from tests.integration.local_attachments import resize
from muster.domain.attachments.request import TerminalSize
from tests.integration.programs import ROOT

WITHIN = 30.0
"""Seconds in which a program of a test ends."""

HOST = "muster-dev"


@dataclass(frozen=True, kw_only=True)
class Finished:
    """How a program ended."""

    code: int
    output: bytes
    errors: str


class SshHost:
    """The host, with settings by which `ssh` finds it."""

    def __init__(self, directory: Path) -> None:
        self.execution = directory / "execution"
        self.config = directory / "config"
        self.log = directory / "log"
        """Gets a line for each server that has ended."""
        self.execution.mkdir()
        keys = directory / "keys"
        words = (sys.executable, "-m", "tests.integration.local_attachments", self.execution, keys, self.log)
        settings = SshSettings(proxy=tuple(map(str, words)), known_hosts=known_hosts_file(keys))
        self.config.write_text(config_text(settings))

    def refuse(self) -> None:
        """Have every attachment refused from now on."""
        (self.execution / "refuses").touch()

    @asynccontextmanager
    async def started(self, *words: str, program: str = "ssh") -> AsyncIterator[Process]:
        """A program of OpenSSH that knows the host, until the context ends."""
        process = await asyncio.create_subprocess_exec(
            program, "-F", str(self.config), *words, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment(), limit=2**20
        )
        try:
            async with asyncio.timeout(WITHIN):
                yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def run(self, *words: str, given: bytes = b"", program: str = "ssh") -> Finished:
        """A program of OpenSSH to its end."""
        async with self.started(*words, program=program) as process:
            output, errors = await process.communicate(given)
            return Finished(code=process.returncode or 0, output=output, errors=errors.decode())

    async def ssh(self, line: str, *options: str, given: bytes = b"") -> Finished:
        """A command line there."""
        return await self.run(*options, HOST, line, given=given)

    async def piped(self, line: str, *, before: str = "") -> Finished:
        """A line of a shell here that ends with the words of one for the host."""
        return await to_its_end("bash", "-c", f"{before} ssh -F {self.config} {HOST} {line}")

    @asynccontextmanager
    async def forwarding(self, *options: str) -> AsyncIterator[None]:
        """`ssh` in the background with these forwards, all of which are there; what it says is `said`."""
        control = self.config.with_name("control")
        master = ("-M", "-S", str(control), "-f", "-N", "-E", str(self.said), "-o", "ExitOnForwardFailure=yes")
        begun = await asyncio.create_subprocess_exec(  # no pipes, which the one in the background would keep open
            "ssh", "-F", str(self.config), *master, *options, HOST, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, env=environment()
        )
        async with asyncio.timeout(WITHIN):
            assert await begun.wait() == 0, self.said.read_text()
        try:
            yield
        finally:
            assert (await self.run("-S", str(control), "-O", "exit", HOST)).code == 0

    @property
    def said(self) -> Path:
        """What `ssh` in the background has said."""
        return self.config.with_name("said")


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
                self._seen += await asyncio.to_thread(os.read, self._mine, 4096)
        before, _, self._seen = self._seen.partition(words)
        return before + words

    def types(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._mine, keys)

    def resizes(self, rows: int, columns: int) -> None:
        """Draw the window to another size."""
        resize(self._mine, TerminalSize(rows=rows, columns=columns))

    async def ends(self) -> int:
        """The exit code."""
        async with asyncio.timeout(WITHIN):
            return await self.process.wait()


async def to_its_end(*words: str) -> Finished:
    """Another program to its end."""
    process = await asyncio.create_subprocess_exec(*words, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment())
    try:
        async with asyncio.timeout(WITHIN):
            output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Finished(code=process.returncode or 0, output=output, errors=errors.decode())


@asynccontextmanager
async def at_terminal(host: SshHost, *words: str, rows: int = 33, columns: int = 111) -> AsyncIterator[AtTerminal]:
    """Run `ssh` at a terminal of this size."""
    mine, theirs = pty.openpty()
    resize(mine, TerminalSize(rows=rows, columns=columns))
    process = await asyncio.create_subprocess_exec(
        *("setsid", "--ctty", "--wait", "ssh", "-F", str(host.config), *words),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**environment(), "TERM": "xterm-256color"},
    )
    os.close(theirs)
    try:
        yield AtTerminal(process, mine)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        os.close(mine)


def environment() -> dict[str, str]:
    """Variables with which the server behind `ssh` finds us."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))}
