"""Programs beside the coordinator on this machine. The fleet goes on without them, and each is started again."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from muster.cli.local.claim import Claim
from muster.cli.local.programs import started, stop, taken
from muster.daemon.own_programs import command_of

_COMPANION_PATIENCE = 30.0
"""Seconds that are waited for each of them at the start."""
_COMPANION_PAUSE = 2.0
"""Seconds until one is started again that has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanionProgram:
    """How one of them is started."""

    name: str
    module: str
    """What Python runs."""
    log: Path
    arguments: Callable[[], Sequence[str]]
    """Asked at each start; the place for its address follows."""


@dataclass(slots=True, kw_only=True)
class RunningCompanion:
    """One that is kept running."""

    log: Path
    address: str | None = None
    """Where it served first; None where it does not serve yet."""


@asynccontextmanager
async def companions_beside(
    programs: Sequence[CompanionProgram], directory: Path, claim: Claim
) -> AsyncIterator[dict[str, RunningCompanion]]:
    """Have programs run within the block, by their names; each is waited for a while at the start."""
    kept = {each.name: RunningCompanion(log=each.log) for each in programs}
    async with asyncio.TaskGroup() as tasks:
        serving = {each.name: asyncio.Event() for each in programs}
        keeping = [
            tasks.create_task(
                _keep(each, directory / f"{each.name}.{os.getpid()}", claim, kept[each.name], serving[each.name]),
                name=f"keep a {each.name}",
            )
            for each in programs
        ]
        try:
            with suppress(TimeoutError):  # the fleet does without, and says so to whoever needs one of them
                async with asyncio.timeout(_COMPANION_PATIENCE):
                    for event in serving.values():
                        await event.wait()
            yield kept
        finally:
            for task in keeping:
                task.cancel()


async def _keep(
    program: CompanionProgram, ready_file: Path, claim: Claim, kept: RunningCompanion, serving: asyncio.Event
) -> None:
    """Have a program run, and another one after it has ended, until cancelled."""
    while True:
        words = (*program.arguments(), "--ready-file", str(ready_file))
        process = await started(command_of(program.module, *words), program.log, claim)
        try:
            # A file tells nobody that it is there; this is looked for during one start only.
            while (address := taken(ready_file)) is None and process.returncode is None:  # noqa: ASYNC110 - a program that begins tells nobody but by its file
                await asyncio.sleep(0.05)
            kept.address = kept.address or address
            serving.set()
            await process.wait()
        finally:
            await stop(program.name, process)
        claim.ended(process.pid)
        await asyncio.sleep(_COMPANION_PAUSE)
