"""Memory of an agent that has nothing to do, and how long it takes to list jobs on the command line."""

import asyncio
import time

from bench.figures import Bar
from bench.fleet import fleet, gang
from bench.programs import finished, resident
from bench.reaper import descendants
from bench.setting import Setting
from bench.throughput import submit_all

NODES = 8
SETTLED = 5.0
"""Seconds after which a fresh agent has nothing left to do."""
AGENT_BAR = Bar(figure="agent resident memory, idle", limit=45, unit="MB")
JOBS_BAR = Bar(figure="muster jobs, warm coordinator, whole process", limit=0.2, unit="s")
JOBS = 100
MB = 2**20 / 1e6


async def measure(setting: Setting) -> None:
    """Agents, coordinator, `muster jobs`."""
    async with fleet(setting.scratch, NODES) as muster:
        await asyncio.sleep(SETTLED)
        await setting.quiet("memory of agents; muster jobs")
        setting.findings.take("memory: agent", [resident(pid) * MB for pid in muster.agents], "MB")
        beside = [sum(map(resident, descendants(pid))) * MB for pid in muster.agents]
        setting.findings.take("memory: programs of an agent beside it", beside, "MB")
        setting.findings.take("memory: coordinator of 8 nodes", [resident(muster.coordinator) * MB], "MB")
        setting.findings.absolute(AGENT_BAR, "memory: agent")
        await submit_all(muster, gang(1, "/bin/true"), JOBS)
        words, environment = muster.command_line()
        times: dict[str, list[float]] = {"muster jobs": [], "muster version": []}
        for _ in range(setting.repeats(15, 5)):
            for name, values in times.items():
                began = time.perf_counter()
                await finished([*words, name.split()[1]], 60, **environment)
                values.append(time.perf_counter() - began)
        for name, values in times.items():
            setting.findings.take(f"CLI: {name}", values, "s")
        setting.findings.absolute(JOBS_BAR, "CLI: muster jobs")
