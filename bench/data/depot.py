"""A depot beside a coordinator, as a program, and folders that are sent to it with `muster upload`."""

import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.fleet import READY_WITHIN, Fleet
from bench.programs import ended_at_exit, finished, serving, start

UPLOAD_WITHIN = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What one `muster upload` did."""

    took: float
    """Milliseconds of the whole command."""
    tree: str
    size: int
    """Bytes of the form of the tree."""
    sent: int
    """Bytes that went to the depot."""


@asynccontextmanager
async def depot(it: Fleet, directory: Path) -> AsyncIterator[int]:
    """The process id of a depot that has come to this coordinator, for as long as this lasts."""
    ready, log, probe = directory / "depot-address", directory / "depot.log", directory / "probe"
    probe.mkdir(exist_ok=True)
    (probe / "empty").touch()
    command = [sys.executable, "-m", "coordinator.depot", "--state", it.state, "--listen-depot", "127.0.0.1:0"]
    async with ended_at_exit() as programs:
        programs.append(start([*command, "--ready-file", ready, "--log-level", "warning"], log))
        await serving(programs[0], ready, log, READY_WITHIN)
        await upload(it, directory, probe)
        yield programs[0].pid


async def upload(it: Fleet, cache: Path, folder: Path) -> Sent:
    """Send a folder; `cache`: where the client remembers what it has read."""
    words, known = it.command_line()
    began = time.perf_counter()
    said = await finished([*words, "upload", folder, "-o", "json"], UPLOAD_WITHIN, **known, XDG_CACHE_HOME=str(cache))
    took = (time.perf_counter() - began) * 1000
    told = json.loads(said)
    return Sent(took=took, tree=told["tree"], size=told["size"], sent=told["sent"])
