"""The first start of a gang: Muster beside Ray (a placement group that spreads strictly, an actor on each node)."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from bench.figures import Bar
from bench.fleet import fleet
from bench.gangs import Stamped
from bench.programs import ProgramError
from bench.scratch import PROGRAMS, Scratch
from bench.setting import Setting, Turns

SIZE = 8
READY_WITHIN = 240.0
GANG_WITHIN = 180.0
STOP_WITHIN = 30.0
BAR = Bar(figure="first start of 8: Muster / Ray", limit=0.1)


async def measure(setting: Setting) -> None:
    """Measure them in turn."""
    if not setting.has("ray"):
        return
    turns = Turns(setting.repeats(7, 2))
    async with ray_cluster(setting.scratch) as ray, fleet(setting.scratch, SIZE) as muster:
        await setting.quiet(f"first start of {SIZE}: Ray, Muster")
        stamped = Stamped(setting, muster, None)
        for _ in turns:
            turns.keep({f"Ray {name}": value for name, value in (await ray.gang(SIZE)).items()})
            turns.keep({name.replace("API", "Muster"): value for name, value in (await stamped.api(SIZE)).items()})
    for name, values in turns.found.items():
        setting.findings.take(f"first start {SIZE}: {name}", values, "ms")
    setting.findings.ratio(BAR, f"first start {SIZE}: Muster all addresses", f"first start {SIZE}: Ray all addresses")


class RayCluster:
    """A program in the peers' environment that starts gangs on demand."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def line(self, limit: float) -> str:
        """What it says next."""
        assert self._process.stdout is not None
        async with asyncio.timeout(limit):
            said = await self._process.stdout.readline()
        if not said:
            raise ProgramError("the Ray cluster ended; its log is ray.log in the scratch directory")
        return said.decode()

    async def gang(self, size: int) -> dict[str, float]:
        """Milliseconds until all started, and until all had all addresses."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{size}\n".encode())
        answer: dict[str, float] = json.loads(await self.line(GANG_WITHIN))
        return answer


@asynccontextmanager
async def ray_cluster(scratch: Scratch) -> AsyncIterator[RayCluster]:
    """A head and SIZE nodes of one CPU; they end with the block."""
    with (scratch.path / "ray.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.reaper", scratch.python),
            PROGRAMS / "ray_gangs.py",
            str(SIZE),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0"},
            process_group=0,
        )
    cluster = RayCluster(process)
    try:
        while (await cluster.line(READY_WITHIN)).strip() != "ready":
            pass
        yield cluster
    finally:
        assert process.stdin is not None
        process.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_WITHIN):
                await process.wait()
        if process.returncode is None:
            process.terminate()
            async with asyncio.timeout(STOP_WITHIN):
                await process.wait()
