"""Durable transitions per second: the engine with SQLite (synchronous=FULL), and 32 gangs that go on at once.

No network: what is measured is stepping, committing and answering. Every gang waits for its answer, which comes when
the transition is durable, before it goes on.
"""

import asyncio
import time

from bench.core_fleet import inventory, reported
from bench.figures import Bar
from bench.setting import Setting
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import JobSubmitted, NodeConnected
from coordinator.core.records import Execution
from coordinator.engine.engine import Engine
from coordinator.service.known_projects import make_default_project
from coordinator.store.records.sql import SqlStore
from muster.domain.gangs.plan import Stage
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.domain.jobs.job import DEFAULT_PROJECT, JobSpec, Packing, Resources, Role

GANGS, SIZE = 32, 32
STAGES = (Stage.PREPARING, Stage.PREPARED, Stage.ARMED, Stage.RUNNING, Stage.EXITED)
BAR = Bar(figure="durable transitions per second, 32 gangs at once", limit=10_000, unit="/s", at_least=True)


async def measure(setting: Setting) -> None:
    """Gangs from submit to end, several times over."""
    await setting.quiet(f"transitions: {GANGS} gangs of {SIZE}")
    directory = setting.scratch.fresh("transitions")
    store = SqlStore.open(directory / "coordinator.db")
    engine = Engine(store, lambda _: None)
    rates, waits = [], []
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(engine.run(), name="engine")
        await make_default_project(engine)
        await asyncio.gather(*(_connect(engine, number) for number in range(SIZE)))
        for turn in range(setting.repeats(7, 3) + 1):
            began = time.perf_counter()
            answers = await asyncio.gather(*(_gang(engine, f"g{turn}-{number}") for number in range(GANGS)))
            if turn:
                # Every execution enters PLACED and one state with each report; QUEUED is where it begins.
                rates.append(GANGS * SIZE * (len(STAGES) + 1) / (time.perf_counter() - began))
                waits += [wait for each in answers for wait in each]
        running.cancel()
    store.close()
    setting.findings.take("transitions", rates, "/s")
    setting.findings.take("transitions: answer", sorted(waits), "ms")
    setting.findings.absolute(BAR, "transitions")


async def _connect(engine: Engine, number: int) -> None:
    name = NodeId(f"node{number}")
    await engine.apply(
        NodeConnected(
            node=name,
            session=engine.streams.open().number,
            identity=name,
            version="bench",
            address=f"127.0.1.{number}",
            inventory=inventory(name, 0),
        )
    )


async def _gang(engine: Engine, name: str) -> list[float]:
    """From submit to end, each stage of all its executions in one round of reports; how long the answers took."""
    job, waits = JobId(name), []
    one = Role(count=SIZE, command=("train",), resources=Resources(cpu_millis=10))
    spec = JobSpec(name=name, project=DEFAULT_PROJECT, roles=(one,), packing=Packing.SPREAD, max_per_node=1)
    await engine.apply(JobSubmitted(job=job, spec=spec))

    def members(cluster: Cluster, _: object) -> list[Execution]:
        return list(cluster.gangs.members(AttemptId(job, 1)))

    placed = await engine.query(members)
    for stage in STAGES:
        began = time.perf_counter()
        await asyncio.gather(*(engine.apply(reported(member, stage)) for member in placed))
        waits.append((time.perf_counter() - began) * 1000)
    return waits
