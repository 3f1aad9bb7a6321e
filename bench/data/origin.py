"""The web server from which inputs come: a program of its own that counts what it gives."""

import asyncio
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.fleet import READY_WITHIN
from bench.programs import ended_at_exit, serving, start
from bench.scratch import PROGRAMS
from muster.domain.data.job_input import JobInput

NAME = "base.bin"


@dataclass(slots=True)
class Origin:
    """A server that has one file under as many addresses as are wanted."""

    url: str
    file: Path
    versions: int = 0

    def fresh(self) -> JobInput:
        """The file at an address under which nobody has fetched it yet."""
        self.versions += 1
        return JobInput(name="base", url=f"{self.url}/files/{self.versions}/{NAME}")

    async def given(self) -> int:
        """Bytes of files that it has given in all."""
        return int(await asyncio.to_thread(_read, f"{self.url}/given"))


def _read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=READY_WITHIN) as answer:  # noqa: S310 - a server that we have started
        found: bytes = answer.read()
    return found


@asynccontextmanager
async def origin(directory: Path, content: bytes, *, rate: int = 0) -> AsyncIterator[Origin]:
    """A server for as long as this lasts; `rate`: bytes per second for all who ask it together, 0 for no limit.

    `directory` is there already.
    """
    file, ready, log = directory / NAME, directory / "address", directory / "origin.log"
    file.write_bytes(content)
    async with ended_at_exit() as programs:
        command = [sys.executable, PROGRAMS / "web_origin.py", file, ready, rate]
        programs.append(start(command, log))
        yield Origin(await serving(programs[0], ready, log, READY_WITHIN), file)
