"""Jobs per second: trivial ones completed beside Slurm, durable submits, gangs of four."""

import asyncio
import time
from contextlib import AsyncExitStack

from bench.figures import Bar
from bench.fleet import Fleet, fleet, gang
from bench.setting import Setting
from bench.slurm import CPUS, Slurm, slurm
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import JobPhase

NODES = 32
TRIVIAL = "/bin/true"
GANG = 4
IN_FLIGHT = 64
"""Submits that wait for their answer at a time on the one connection."""
ONE_BY_ONE = 200
"""Submits each of which waits for the answer to the one before."""
COMPLETED_WITHIN = 300.0
COMPLETED_BAR = Bar(figure="trivial jobs completed per second: Muster / Slurm", limit=1.5, at_least=True)
SUBMITS_BAR = Bar(figure="durable submits per second, one connection, bulk", limit=1000, unit="/s", at_least=True)
UNENDED = [phase for phase in JobPhase if not phase.ended]


async def measure(setting: Setting) -> None:
    """Slurm and Muster in turn."""
    async with AsyncExitStack() as stack:
        peer = await stack.enter_async_context(slurm(setting.scratch, NODES)) if setting.has("slurm") else None
        muster = await stack.enter_async_context(fleet(setting.scratch, NODES))
        await setting.quiet(f"trivial jobs and gangs of {GANG} per second")
        await _completed(setting, muster, peer)
        await setting.quiet("durable submits per second")
        await _submits(setting, muster)


async def _completed(setting: Setting, muster: Fleet, peer: Slurm | None) -> None:
    jobs = 100 if setting.quick else 400
    found: dict[str, list[float]] = {}
    for _ in range(setting.repeats(5, 2)):
        if peer is not None:
            rate = await _slurm_array(peer, jobs, f"exec {TRIVIAL}", setting)
            found.setdefault("trivial jobs: Slurm (array)", []).append(rate)
            nodes = (f"-N{GANG}", f"-n{GANG}")
            rate = await _slurm_array(peer, jobs // GANG // 2, f"exec srun {TRIVIAL}", setting, *nodes)
            found.setdefault(f"gangs of {GANG}: Slurm (array of srun)", []).append(rate)
        single = gang(1, TRIVIAL, cpus=1000, spread=False)
        found.setdefault("trivial jobs: Muster", []).append(await _muster_jobs(muster, single, jobs))
        four = gang(GANG, TRIVIAL, cpus=1000)
        found.setdefault(f"gangs of {GANG}: Muster", []).append(await _muster_jobs(muster, four, jobs // GANG))
    for name, values in found.items():
        setting.findings.take(name, values, "/s")
    setting.findings.ratio(COMPLETED_BAR, "trivial jobs: Muster", "trivial jobs: Slurm (array)")
    gangs = Bar(figure=f"gangs of {GANG} completed per second: Muster / Slurm", at_least=True)
    setting.findings.ratio(gangs, f"gangs of {GANG}: Muster", f"gangs of {GANG}: Slurm (array of srun)")


async def _slurm_array(peer: Slurm, jobs: int, command: str, setting: Setting, *options: str) -> float:
    """Jobs per second of one array, which is the fastest way to give Slurm many jobs."""
    script = setting.scratch.path / "slurm" / "script"
    script.write_text(f"#!/bin/sh\n{command}\n")
    began = await peer.sbatch(*options, f"--array=1-{jobs}", script)
    await peer.idle()
    return jobs / (time.time_ns() - began) * 1e9


async def _muster_jobs(muster: Fleet, spec: JobSpec, jobs: int) -> float:
    """Jobs per second, each submitted by itself through one client."""
    began = time.monotonic()
    await submit_all(muster, spec, jobs)
    async with asyncio.timeout(COMPLETED_WITHIN):
        while [job async for job in muster.client.jobs.list(phases=UNENDED, limit=1)]:
            await asyncio.sleep(0.02)
    return jobs / (time.monotonic() - began)


async def submit_all(muster: Fleet, spec: JobSpec, jobs: int, *, queue_anyway: bool = False) -> list[float]:
    """Submit a job many times, several at a time; gives how long each answer took, in milliseconds."""
    waits: list[float] = []
    left = iter(range(jobs))

    async def some() -> None:
        for _ in left:
            began = time.perf_counter()
            await muster.client.jobs.submit(spec, queue_anyway=queue_anyway)
            waits.append((time.perf_counter() - began) * 1000)

    async with asyncio.TaskGroup() as tasks:
        for number in range(IN_FLIGHT):
            tasks.create_task(some(), name=f"submit {number}")
    return waits


async def _submits(setting: Setting, muster: Fleet) -> None:
    """Jobs that fit nowhere now: what is measured is taking them in, not running them."""
    waiting = gang(1, TRIVIAL, cpus=CPUS * 1000 + 1, spread=False)
    bulk, rates, waits, single = [], [], [], []
    jobs = 1000 if setting.quick else 4000
    for _ in range(setting.repeats(5, 2)):
        began = time.monotonic()
        await muster.client.jobs.submit_many([waiting] * jobs, queue_anyway=True)
        bulk.append(jobs / (time.monotonic() - began))
        began = time.monotonic()
        waits += await submit_all(muster, waiting, jobs, queue_anyway=True)
        rates.append(jobs / (time.monotonic() - began))
        began = time.monotonic()
        for _ in range(ONE_BY_ONE):
            await muster.client.jobs.submit(waiting, queue_anyway=True)
        single.append(ONE_BY_ONE / (time.monotonic() - began))
    setting.findings.take("durable submits, one after the other", single, "/s")
    setting.findings.take(f"durable submits, {IN_FLIGHT} calls in flight", rates, "/s")
    setting.findings.take(
        f"durable submits, {IN_FLIGHT} calls in flight: answer", sorted(waits)[:: max(1, len(waits) // 50)], "ms"
    )
    setting.findings.take("durable submits, bulk", bulk, "/s")
    setting.findings.absolute(SUBMITS_BAR, "durable submits, bulk")
