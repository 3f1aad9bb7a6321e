"""Thousands of nodes on one coordinator: real gRPC with mTLS, simulated agents in one other program.

Both share the CPUs of this machine, so a figure is the sum of what the coordinator and all the agents do for it.
"""

import asyncio
import json
import math
import os
import resource
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.core import SLOPE, slope
from bench.figures import Bar
from bench.fleet import Fleet, coordinator, gang
from bench.programs import ProgramError, cpu_seconds, resident
from bench.setting import Setting
from bench.throughput import submit_all
from muster.domain.errors import MusterError, first_of
from muster.domain.jobs.job import JobSpec, Packing, Resources, Role
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.view import JobView

ORDER_WITHIN = 300.0
RUNNING_WITHIN = 120.0
STORMS = {1000: 2.5, 5000: 12.0}
RELEASES = {1000: 0.35, 5000: 1.5}
CPU_BAR = Bar(figure="5,000 nodes' heartbeats (10 s): coordinator CPU, share of one core", limit=0.2)
MEMORY_BAR = Bar(figure="5,000 nodes: coordinator memory", limit=700, unit="MiB")
LEASES_BAR = Bar(figure="5,000 nodes: leases missed, streams lost", limit=0)
EACH = {
    "heartbeat": "{} nodes at rest: coordinator CPU, share of one core",
    "reconnect": "{} nodes: reconnect storm",
    "release": "gang of {}: released → all running (release barrier)",
}
"""Series that should grow as fleets do, and no faster. Fleets are measured minutes apart, and CPUs of a virtual machine
are not as fast in one minute as in the next: so they are compared in multiples of what counting took then."""
GANGS, GANG = 32, 32
LONG_QUEUE = 100_000
MOST_MEMORY = 6 * 2**30
"""Most bytes of a coordinator: one that grows without end must not take the machine with it."""


@dataclass(slots=True)
class Crowd:
    """Simulated agents in a program of their own."""

    process: asyncio.subprocess.Process

    async def order(self, order: str) -> dict[str, float]:
        """Have them do something."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{order}\n".encode())
        async with asyncio.timeout(ORDER_WITHIN):
            answer = await self.process.stdout.readline()
        if not answer:
            raise ProgramError("the simulated agents ended; see crowd.log in the scratch directory")
        found: dict[str, float] = json.loads(answer)
        return found


async def measure(setting: Setting) -> None:
    """1,000 nodes, then 5,000."""
    many_files()
    series = setting.findings.series
    for nodes in setting.fleets:
        async with coordinator(setting.scratch.fresh("scale")) as muster:
            resource.prlimit(muster.coordinator, resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
            alone = resident(muster.coordinator)
            async with crowd(setting.scratch.path, muster, nodes) as agents:
                await _storm(setting, agents, nodes)
                await _at_rest(setting, muster, agents, nodes, alone)
                for measurement in (_gangs, _release):
                    try:
                        await measurement(setting, muster, nodes)
                    except (TimeoutError, MusterError) as error:
                        if measurement is _release:
                            setting.findings.judge(_release_bar(nodes), math.inf, "")
                        setting.findings.remark(f"{nodes} nodes:{measurement.__name__.replace('_', ' ')}: {error!r}")
    for what, name in EACH.items():
        found = {nodes: series[name.format(nodes)].paced for nodes in setting.fleets if name.format(nodes) in series}
        if len(found) > 1:
            bar = Bar(figure=f"cost over gRPC of one {what} against nodes, slope", limit=SLOPE)
            each = [value / nodes for nodes, value in found.items()]
            setting.findings.judge(bar, slope(list(found), each), f"{name.format('N')} / N, as multiples of the pace")


async def measure_queue(setting: Setting) -> None:
    """A long queue on a fleet of 100."""
    many_files()
    jobs = LONG_QUEUE // 10 if setting.quick else LONG_QUEUE
    async with (
        coordinator(setting.scratch.fresh("scale")) as muster,
        crowd(setting.scratch.path, muster, 100) as agents,
    ):
        await agents.order("connect")
        await setting.quiet(f"a queue of {jobs} jobs")
        rates, refusal = await _fill(muster, jobs, parts=10)
        if refusal:
            setting.findings.remark(f"a queue of {jobs} jobs was refused: {refusal}")
        for name, values in rates.items():
            if values:
                setting.findings.take(f"queue of {jobs}: {name}, first to last tenth", values, "/s")
        await _lists(setting, muster, jobs)
        before, began = cpu_seconds(muster.coordinator), time.perf_counter()
        await asyncio.sleep(10)
        share = (cpu_seconds(muster.coordinator) - before) / (time.perf_counter() - began)
        setting.findings.take(f"queue of {jobs}: coordinator at rest", [share * 100], "% of a core")
        setting.findings.take(f"queue of {jobs}: coordinator memory", [resident(muster.coordinator)], "MiB")


async def _fill(muster: Fleet, jobs: int, parts: int) -> tuple[dict[str, list[float]], str]:
    """Jobs that wait, whatever comes free, because they want more CPUs than a node has; rates, and why no more fit.

    Most come with few calls, and a tenth of each part with a call each.
    """
    waiting = gang(1, "train", cpus=65_000, spread=False)
    one_by_one = jobs // parts // 10
    bulk = jobs // parts - one_by_one
    rates: dict[str, list[float]] = {"bulk submits": [], "submits": []}
    refusal = ""
    try:
        for _ in range(parts):
            began = time.perf_counter()
            await muster.client.jobs.submit_many([waiting] * bulk, queue_anyway=True)
            rates["bulk submits"].append(bulk / (time.perf_counter() - began))
            began = time.perf_counter()
            await submit_all(muster, waiting, one_by_one, queue_anyway=True)
            rates["submits"].append(one_by_one / (time.perf_counter() - began))
    except* MusterError as errors:
        refusal = str(first_of(errors))
    return rates, refusal


async def _lists(setting: Setting, muster: Fleet, jobs: int) -> None:
    """A page, the whole list, and a filter that nothing passes."""
    found: dict[str, list[float]] = {"first page of 20": [], "filter that none passes": []}
    for _ in range(setting.repeats(10, 5)):
        for name, values in found.items():
            began = time.perf_counter()
            phases = [] if name.startswith("first") else [JobPhase.RUNNING]
            [job async for job in muster.client.jobs.list(limit=20, phases=phases)]
            values.append((time.perf_counter() - began) * 1000)
    for name, values in found.items():
        setting.findings.take(f"queue of {jobs}: {name}", values, "ms")
    began = time.perf_counter()
    count = len([job async for job in muster.client.jobs.list()])
    took = time.perf_counter() - began
    setting.findings.take(f"queue of {jobs}: the whole list of {count}, paged", [took], "s")


async def _storm(setting: Setting, agents: Crowd, nodes: int) -> None:
    await setting.quiet(f"{nodes} nodes connect, and connect again")
    first = await agents.order("connect")
    setting.findings.take(f"{nodes} nodes: join, all at once", [first["all"]], "s")
    storms = []
    for _ in range(setting.repeats(5, 2)):
        await agents.order("drop")
        await asyncio.sleep(1)
        storms.append((await agents.order("connect"))["all"])
    setting.findings.take(f"{nodes} nodes: reconnect storm", storms, "s")
    bar = Bar(figure=f"reconnect storm, {nodes:,} agents, mTLS", limit=STORMS.get(nodes, math.inf), unit="s")
    setting.findings.absolute(bar, f"{nodes} nodes: reconnect storm")


async def _at_rest(setting: Setting, muster: Fleet, agents: Crowd, nodes: int, alone: float) -> None:
    """Nothing but heartbeats."""
    await asyncio.sleep(5)
    await setting.quiet(f"{nodes} nodes at rest")
    shares = []
    for _ in range(3):
        before, began = cpu_seconds(muster.coordinator), time.perf_counter()
        await asyncio.sleep(10)
        shares.append((cpu_seconds(muster.coordinator) - before) / (time.perf_counter() - began))
    memory, state = resident(muster.coordinator), await agents.order("state")
    missed = nodes - state["connected"] + state["lost"]
    findings = setting.findings
    findings.take(f"{nodes} nodes at rest: coordinator CPU, share of one core", shares, "")
    findings.take(f"{nodes} nodes: coordinator memory", [memory], "MiB")
    findings.take(f"{nodes} nodes: coordinator memory for each", [(memory - alone) / nodes * 1024], "KiB")
    findings.take(f"{nodes} nodes: leases missed, streams lost", [missed], "")
    if nodes == max(STORMS):
        findings.absolute(CPU_BAR, f"{nodes} nodes at rest: coordinator CPU, share of one core")
        findings.absolute(MEMORY_BAR, f"{nodes} nodes: coordinator memory")
        findings.absolute(LEASES_BAR, f"{nodes} nodes: leases missed, streams lost")


async def _release(setting: Setting, muster: Fleet, nodes: int) -> None:
    """One gang over all nodes: from submit to release, and from release until all are reported to run."""
    await setting.quiet(f"a gang of {nodes}")
    one = Role(count=nodes, command=("train",), resources=Resources(gpus=8))
    spec = JobSpec(name="all", roles=(one,), packing=Packing.SPREAD, max_per_node=1)
    found: dict[str, list[float]] = {}
    for _ in range(setting.repeats(5, 1)):
        [job] = await _run(muster, spec)
        attempt, submitted = job.attempts[-1], job.submitted_at
        assert attempt.placed_at
        assert attempt.checked_in_at
        assert attempt.released_at
        assert attempt.started_at
        moments = {
            "submit → placed": (submitted, attempt.placed_at),
            "placed → all checked in": (attempt.placed_at, attempt.checked_in_at),
            "checked in → all armed, released": (attempt.checked_in_at, attempt.released_at),
            "released → all running (release barrier)": (attempt.released_at, attempt.started_at),
            "submit → all running": (submitted, attempt.started_at),
        }
        for name, (since, until) in moments.items():
            found.setdefault(name, []).append((until - since).total_seconds())
        await _stop(muster, [job])
    for name, values in found.items():
        setting.findings.take(f"gang of {nodes}: {name}", values, "s")
    setting.findings.absolute(_release_bar(nodes), f"gang of {nodes}: released → all running (release barrier)")


def _release_bar(nodes: int) -> Bar:
    return Bar(figure=f"release barrier, {nodes:,} agents, mTLS", limit=RELEASES.get(nodes, math.inf), unit="s")


async def _gangs(setting: Setting, muster: Fleet, nodes: int) -> None:
    """Many gangs at once, over gRPC: from submit until all executions of all run."""
    await setting.quiet(f"{GANGS} gangs of {GANG} at once")
    one = Role(count=GANG, command=("train",), resources=Resources(gpus=8))
    spec = JobSpec(name="many", roles=(one,), packing=Packing.SPREAD, max_per_node=1)
    # As many as have room at a time.
    count = min(GANGS, nodes // GANG)
    rates = []
    for _ in range(setting.repeats(3, 1)):
        began = time.perf_counter()
        jobs = await _run(muster, spec, count)
        rates.append(count * GANG * 5 / (time.perf_counter() - began))
        await _stop(muster, jobs)
    setting.findings.take(f"{nodes} nodes: transitions of {count} gangs of {GANG} over gRPC", rates, "/s")


async def _run(muster: Fleet, spec: JobSpec, count: int = 1) -> list[JobView]:
    """Submit and wait until all of it runs."""
    await asyncio.gather(*(muster.client.jobs.submit(spec) for _ in range(count)))
    return await _newest(muster, count, lambda job: job.attempts[-1].started_at is not None)


async def _stop(muster: Fleet, jobs: list[JobView]) -> None:
    """Stop them and wait until nothing of them runs."""
    await asyncio.gather(*(muster.client.jobs.stop(job.id) for job in jobs))
    await _newest(muster, len(jobs), lambda job: job.ended_at is not None)


async def _newest(muster: Fleet, count: int, wanted: Callable[[JobView], bool]) -> list[JobView]:
    """The newest jobs once all are as wanted; of lists, because a watcher is sent all executions at each change."""
    async with asyncio.timeout(RUNNING_WITHIN):
        while True:
            newest = [job async for job in muster.client.jobs.list(limit=count)]
            if all(map(wanted, newest)):
                return newest
            await asyncio.sleep(0.1)


@asynccontextmanager
async def crowd(directory: Path, muster: Fleet, nodes: int) -> AsyncIterator[Crowd]:
    """So many simulated agents, not connected yet; their log is `crowd.log` in the directory."""
    command = [sys.executable, "-m", "bench.crowd", muster.address, str(nodes)]
    env = {**os.environ, "MUSTER_JOIN_TOKEN": muster.join_token}
    with (directory / "crowd.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            process_group=0,
            env=env,
        )
    try:
        yield Crowd(process)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def many_files() -> None:
    """Have as many descriptors as may be, as thousands of connections need them; children inherit the limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
