"""What agents send of logs, on its way to the log store."""

import asyncio

from coordinator.core.cluster import Cluster
from coordinator.engine import Engine
from coordinator.store.logs import LogStore
from muster.domain.ids import ExecutionId
from muster.rpc.v1 import agents_pb2 as pb


class LogIntake:
    """Stores chunks; logs that are complete reach the disk together."""

    def __init__(self, engine: Engine, logs: LogStore) -> None:
        self._engine = engine
        self._logs = logs
        self.waiting: list[ExecutionId] = []
        """Logs that wait for the disk."""
        self._disk = asyncio.Lock()

    async def store(self, chunk: pb.LogChunk) -> pb.LogAck:
        """Keep a chunk; what to tell the agent. Raises ValueError for data that are no log."""
        execution = ExecutionId(chunk.execution)
        if not await self._wanted(execution, chunk.node):
            return pb.LogAck(execution=execution, unwanted=True)
        size, complete = await asyncio.to_thread(self._append, execution, chunk)
        if chunk.last and size >= chunk.offset + len(chunk.data):
            # What belongs to a job that was dropped meanwhile must not come back.
            if not await self._wanted(execution, chunk.node):
                return pb.LogAck(execution=execution, unwanted=True)
            await self._finish(execution)
            complete = True
        self._engine.signals.fire(execution)
        return pb.LogAck(execution=execution, offset=size, complete=complete)

    async def _wanted(self, execution: ExecutionId, node: str) -> bool:
        """Whether an execution is known on this node. The agent may forget what is not, so that must be durable."""

        def known(cluster: Cluster) -> bool:
            there = cluster.executions.get(execution)
            return there is not None and there.node == node

        return self._engine.glance(known) or await self._engine.read(lambda cluster, _: known(cluster))

    def _append(self, execution: ExecutionId, chunk: pb.LogChunk) -> tuple[int, bool]:
        """How much of the log is stored now, and whether nothing more of it is taken."""
        size = self._logs.append(execution, chunk.offset, chunk.data) if chunk.data else self._logs.size(execution)
        # It was complete for an earlier agent; the next one may have said more about it.
        behind = size < chunk.offset + len(chunk.data)
        return size, behind and self._logs.complete(execution)

    async def _finish(self, execution: ExecutionId) -> None:
        """Have the log complete, durably: whoever comes to the disk first takes all that wait with him."""
        self.waiting.append(execution)
        async with self._disk:
            if execution not in self.waiting:
                return
            taken, self.waiting = self.waiting, []
            try:
                await asyncio.to_thread(self._logs.finish, *taken)
            except BaseException:
                # Each of the others tries himself; to finish a log twice does no harm.
                self.waiting = [*self.waiting, *(each for each in taken if each != execution)]
                raise
