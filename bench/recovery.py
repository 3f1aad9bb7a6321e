"""How long it takes to get over a death: of a worker, and of the coordinator.

A coordinator and four nodes, with mTLS. Workers are plain processes that say who they are and sleep; their ends are
seen through descriptors of the processes, so all times are by this program's clock.

* `others stopped`: one worker is killed (SIGKILL); from its end to that of the last other process of its gang.
* `new attempt`: from the same end to the first instruction of the last worker of the new attempt.
* `in control`: the coordinator is killed with many gangs running, and is away for some seconds; from the start of its
  successor's process until it answers, every node is connected, every execution counts as running and none was started
  anew, a job that is submitted runs, and one of the gangs is stopped.
"""

import asyncio
import os
import random
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Bar
from bench.fleet import PROCESSES, Fleet, credentials, fleet, start_coordinator
from bench.programs import ProgramError, ended_at_exit
from bench.setting import Setting, Turns
from bench.witnesses import SCRIPT, Worker, Workers, all_ends, until_gone
from muster.client.client import Client
from muster.domain.fleet.node import NodeState
from muster.domain.jobs.job import JobSpec, Packing, Resources, Role
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.restart import RestartPolicy

NODES = 4
SIZES = (8, 32)
GANG = 2
"""Executions of each gang that outlives the coordinator."""
AWAY = (0.2, 15.0)
"""Seconds without a coordinator."""
STEADY = 2.0
"""Seconds between one death of the coordinator and the next; agents are slow to come back to one that dies at once."""
ROOM = (*PROCESSES, "--ports", "20000-21999")
"""Ports for all gangs on each node, which has an address of its own."""
CHILD = "sleep 3600 & "
"""Words in front of the script: a child that outlives a killed worker, and holds its output, as data loaders do."""
BARS = {"others stopped": 0.3, "new attempt": 1.5, "in control": 2.0}
"""Bars in seconds."""


@dataclass(frozen=True, slots=True)
class Gang:
    """One that outlives coordinators."""

    job: str
    workers: Sequence[Worker]


@dataclass(slots=True)
class Mortal:
    """A fleet whose coordinator is killed."""

    it: Fleet
    directory: Path
    agents_port: int
    workers: Workers

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """A new one: it has no connection that it must find lost first."""
        async with Client(self.it.address, credentials(self.it.state), timeout=60) as client:
            yield client

    async def kill(self) -> None:
        """There is no coordinator any more."""
        with all_ends([self.it.coordinator]) as (end,):
            os.kill(self.it.coordinator, signal.SIGKILL)
            await end

    async def start_again(self) -> "subprocess.Popen[bytes]":
        """A coordinator on the same state, where the one before was; returns when it serves."""
        agents = f"{self.it.address.rpartition(':')[0]}:{self.agents_port}"
        process, _ = await start_coordinator(self.directory, "--listen", self.it.address, "--listen-agents", agents)
        self.it.coordinator = process.pid
        return process

    async def gang(self, client: Client) -> Gang:
        """One that lasts."""
        job = await client.jobs.submit(_job("lasting", GANG, self.workers))
        return Gang(job.id, await self.workers.of(job.id, 1, GANG))


async def measure(setting: Setting) -> None:
    """One worker dies; the coordinator dies."""
    repeats = setting.repeats(10, 3)
    async with fleet(setting.scratch, NODES, *ROOM) as it:
        directory = setting.scratch.path / "muster"
        with closing(Workers(directory / "workers")) as workers:
            mortal = Mortal(it, directory, await it.client.nodes.agents_port(), workers)
            for size in SIZES:
                await setting.quiet(f"a worker of {size} is killed")
                _take(setting, f"worker of {size} killed", await _worker_deaths(mortal, size, SCRIPT, repeats))
            size = min(SIZES)
            await setting.quiet(f"a worker of {size} is killed that has a child")
            found = await _worker_deaths(mortal, size, CHILD + SCRIPT, repeats)
            _take(setting, f"worker of {size} with a child killed", found)
            await _coordinator_deaths(setting, mortal)


def _take(setting: Setting, case: str, found: Mapping[str, Sequence[float]]) -> None:
    for figure, values in found.items():
        name = f"recovery: {case}: {figure}"
        setting.findings.take(name, values, "s")
        if figure in BARS:
            setting.findings.absolute(Bar(figure=f"{case}: {figure}", limit=BARS[figure], unit="s"), name)


async def _worker_deaths(mortal: Mortal, size: int, script: str, repeats: int) -> Mapping[str, Sequence[float]]:
    """Kill a worker again and again, each time of another gang."""
    turns = Turns(repeats)
    for _ in turns:
        turns.keep(await _worker_death(mortal, size, script))
    return turns.found


async def _worker_death(mortal: Mortal, size: int, script: str) -> Mapping[str, float]:
    """Seconds from the end of a worker to that of the others, and to the new attempt."""
    client, workers = mortal.it.client, mortal.workers
    job = await client.jobs.submit(_job("mortal", size, workers, script=script, restarts=1))
    pids = [worker.pid for worker in await workers.of(job.id, 1, size)]
    with all_ends(pids) as ends:
        victim = random.randrange(size)  # noqa: S311 - a choice, not a secret
        os.kill(pids[victim], signal.SIGKILL)
        died, *others = [await ends[victim], *[await end for end in ends]]
    again = await workers.of(job.id, 2, size)
    await client.jobs.delete(job.id, force=True)
    await until_gone(worker.pid for worker in again)
    return {"others stopped": max(others) - died, "new attempt": max(worker.began for worker in again) - died}


async def _coordinator_deaths(setting: Setting, mortal: Mortal) -> None:
    """Kill the coordinator again and again while the same gangs run."""
    count = setting.repeats(100, 20)
    async with mortal.client() as client:
        gangs = [await mortal.gang(client) for _ in range(count)]
    async with ended_at_exit() as successors:
        for away in AWAY[:1] if setting.quick else AWAY:
            await setting.quiet(f"the coordinator is killed with {count} gangs running, and {away:g} s away")
            found: dict[str, list[float]] = defaultdict(list)
            for _ in range(setting.repeats(3 if away > 1 else 10, 3)):
                await mortal.kill()
                await asyncio.sleep(away)
                began = time.perf_counter()
                successors.append(await mortal.start_again())
                for figure, at in (await _in_control(mortal, gangs)).items():
                    found[figure].append(at - began)
                async with mortal.client() as client:
                    gangs.append(await mortal.gang(client))
                await asyncio.sleep(STEADY)
            _take(setting, f"coordinator killed with {count} gangs, {away:g} s away", found)


async def _in_control(mortal: Mortal, gangs: list[Gang]) -> Mapping[str, float]:
    """When a new coordinator could do each thing again; stops the first of the gangs."""
    async with mortal.client() as client, asyncio.TaskGroup() as tasks:
        await client.nodes.list()
        answered = time.perf_counter()
        done = {
            "nodes connected, all adopted": tasks.create_task(_adopted(client, len(gangs)), name="adopted"),
            "new job runs": tasks.create_task(_placed(client, mortal.workers), name="placed"),
            "gang stopped": tasks.create_task(_stopped(client, gangs.pop(0)), name="stopped"),
        }
    pids = [worker.pid for each in gangs for worker in each.workers]
    if any(mortal.workers.started_again(each.job) for each in gangs) or not all(map(_runs, pids)):
        raise ProgramError("a gang did not outlive the coordinator")
    found = {"answers": answered, **{figure: task.result() for figure, task in done.items()}}
    return {**found, "in control": max(found.values())}


async def _adopted(client: Client, gangs: int) -> float:
    """When all nodes were connected and all gangs (but one that is being stopped) counted as running."""
    while sum(node.state is NodeState.READY for node in await client.nodes.list()) < NODES:
        await asyncio.sleep(0.02)
    running = [job async for job in client.jobs.list(phases=[JobPhase.RUNNING], name_contains="lasting")]
    if len(running) < gangs - 1:
        raise ProgramError(f"only {len(running)} of {gangs} gangs run")
    return time.perf_counter()


async def _placed(client: Client, workers: Workers) -> float:
    """When a job ran that was submitted just now."""
    job = await client.jobs.submit(_job("fresh", 1, workers), queue_anyway=True)
    (worker,) = await workers.of(job.id, 1, 1)
    await client.jobs.delete(job.id, force=True)
    return worker.began


async def _stopped(client: Client, it: Gang) -> float:
    """When nothing ran any more of a gang that was stopped just now."""
    with all_ends([worker.pid for worker in it.workers]) as ends:
        await client.jobs.stop(it.job)
        last = max([await end for end in ends])
    phase = (await client.jobs.wait(it.job)).phase
    if phase is not JobPhase.STOPPED:
        raise ProgramError(f"{it.job} was stopped and is {phase}")
    await client.jobs.delete(it.job)
    return last


def _runs(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _job(name: str, size: int, workers: Workers, *, script: str = SCRIPT, restarts: int = 0) -> JobSpec:
    """Workers on all nodes, as small as possible."""
    role = Role(
        count=size,
        command=("/bin/sh", "-c", script),
        env={"HERE": str(workers.pipe)},
        resources=Resources(cpu_millis=10),
    )
    return JobSpec(name=name, packing=Packing.SPREAD, roles=(role,), restarts=RestartPolicy(limit=restarts))
