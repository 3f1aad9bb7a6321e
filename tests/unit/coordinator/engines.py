"""Engines without a disk for tests, what they are told, and stores that do not do as they should."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from coordinator.core.events import JobSubmitted, NodeConnected
from coordinator.core.records import Change, Put
from coordinator.core.turn.batching import HOLD
from coordinator.engine.agent_streams import AgentStream
from coordinator.engine.engine import Engine
from coordinator.engine.recovery import REST
from coordinator.store.records.memory import MemoryStore
from coordinator.store.store import StoreError
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import inventory, puts_of, spec
from tests.unit.coordinator.trust.memory_trust import PROJECTS

A = NodeId("a")
J = JobId("j")


class StoreThatWaits(MemoryStore):
    """A store whose commits take until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Event()
        self.let_go = threading.Event()

    def commit(self, changes: Sequence[Change]) -> None:
        self.entered.set()
        self.let_go.wait(60)
        super().commit(changes)


class StoreThatIsFull(MemoryStore):
    """Keeps nothing new while its disk is full."""

    def __init__(self) -> None:
        super().__init__()
        self.full = True
        self.tries = 0

    def commit(self, changes: Sequence[Change]) -> None:
        self.tries += 1
        if self.full:
            records = sum(isinstance(change, Put) for change in changes)
            raise StoreError(f"cannot store {records} records: the disk is full")
        super().commit(changes)


def submission(name: str = J, **fields: Any) -> JobSubmitted:
    """One execution that may wait for ever."""
    return JobSubmitted(job=JobId(name), spec=spec(1, **fields), queue_anyway=True)


def connection(session: AgentStream, identity: str = "identity", node: NodeId = A) -> NodeConnected:
    """A node with one GPU on that stream."""
    return NodeConnected(
        node=node,
        session=session.number,
        identity=identity,
        version="0.1",
        address="10.0.0.1",
        inventory=inventory("a", 1),
    )


def engine_on(
    store: MemoryStore,
    projects: Iterable[str] = PROJECTS,
    *,
    forget_logs: Callable[[JobId], None] = lambda _: None,
    hold: float = HOLD,
    rest: float = REST,
) -> Engine:
    """One that keeps its records there and no logs, with these projects: those of `Trusted` unless they are said."""
    MemoryStore.commit(store, puts_of(projects))  # also into a store that keeps nothing new, or waits with it
    return Engine(store, forget_logs, hold=hold, rest=rest)


@asynccontextmanager
async def working(engine: Engine) -> AsyncIterator[asyncio.TaskGroup]:
    """The engine at work, and a group for what is to happen beside it."""
    async with asyncio.TaskGroup() as tasks:
        run = tasks.create_task(engine.run(), name="engine")
        yield tasks
        run.cancel()


async def phase(engine: Engine, job: JobId = J) -> JobPhase:
    """How far a job durably is."""
    return await engine.query(lambda cluster, _: cluster.phase(job))


async def all_else_has_had_its_turn() -> None:
    """Whatever can go on without the outside has gone on."""
    for _ in range(20):
        await asyncio.sleep(0)
