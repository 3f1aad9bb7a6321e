"""What agents send of logs, on its way to the log store."""

import asyncio
from collections.abc import Collection, Iterable

from coordinator.core.cluster.cluster import Cluster
from coordinator.engine.engine import Engine
from coordinator.store.logs.logs import LogStore
from coordinator.store.logs.quota import LogQuota
from muster.domain.gangs.plan import Report
from muster.domain.ids import ExecutionId, JobId
from muster.rpc.v1 import agents_pb2 as pb


class LogIntake:
    """Stores chunks; logs that are complete reach the disk together."""

    def __init__(self, engine: Engine, logs: LogStore, quota: LogQuota | None = None) -> None:
        """`quota`: what projects may keep; None: there is no such limit."""
        self._engine = engine
        self._logs = logs
        self._quota = quota
        self.waiting: list[ExecutionId] = []
        """Logs that wait for the disk."""
        self._disk = asyncio.Lock()

    async def store(self, chunk: pb.LogChunk) -> pb.LogAck:
        """Keep a chunk; what to tell the agent. Raises ValueError for data that are no log."""
        execution = ExecutionId(chunk.execution)
        if not await self._wanted(execution, chunk.node):
            return pb.LogAck(execution=execution, unwanted=True)
        size, complete = await asyncio.to_thread(self._append, execution, chunk, self._job_of(execution))
        if chunk.last and size >= chunk.offset + len(chunk.data):
            # What belongs to a job that was dropped meanwhile must not come back.
            if not await self._wanted(execution, chunk.node):
                return pb.LogAck(execution=execution, unwanted=True)
            await self._finish(execution)
            complete = True
        self._engine.signals.fire(execution)
        return pb.LogAck(execution=execution, offset=size, complete=complete)

    def kept(self, reports: Iterable[Report]) -> Collection[ExecutionId]:
        """Executions whose log is complete and has a file; a look at two names each, which is not worth a thread."""
        complete = (report.execution for report in reports if report.log_complete)
        return frozenset(execution for execution in complete if self._logs.kept(execution))

    async def _wanted(self, execution: ExecutionId, node: str) -> bool:
        """Whether an execution is known on this node. The agent may forget what is not, so that must be durable."""

        def known(cluster: Cluster) -> bool:
            there = cluster.executions.get(execution)
            return there is not None and there.node == node

        return self._engine.query_now(known) or await self._engine.query(lambda cluster, _: known(cluster))

    def _job_of(self, execution: ExecutionId) -> tuple[JobId, str] | None:
        """The job and its project, where they are counted."""

        def job_of(cluster: Cluster) -> tuple[JobId, str] | None:
            there = cluster.executions.get(execution)
            return None if there is None else (there.job, cluster.jobs[there.job].spec.project)

        return None if self._quota is None else self._engine.query_now(job_of)

    def _append(self, execution: ExecutionId, chunk: pb.LogChunk, job: tuple[JobId, str] | None) -> tuple[int, bool]:
        """How much of the log is stored now, and whether nothing more of it is taken."""
        if self._quota is not None and job is not None and chunk.data:
            return self._append_counted(execution, chunk, self._quota, job)
        size = self._logs.append(execution, chunk.offset, chunk.data) if chunk.data else self._logs.size(execution)
        # It was complete for an earlier agent; the next one may have said more about it.
        behind = size < chunk.offset + len(chunk.data)
        return size, behind and self._logs.complete(execution)

    def _append_counted(
        self, execution: ExecutionId, chunk: pb.LogChunk, quota: LogQuota, job: tuple[JobId, str]
    ) -> tuple[int, bool]:
        before = self._logs.size(execution)
        if before < chunk.offset + len(chunk.data) and (words := quota.refusal(job[1])) is not None:
            return self._logs.end(execution, words), True
        size = self._logs.append(execution, chunk.offset, chunk.data)
        quota.add(*job, size - before)
        return size, size < chunk.offset + len(chunk.data) and self._logs.complete(execution)

    async def _finish(self, execution: ExecutionId) -> None:
        """Have the log complete, durably: one wait for the disk serves all that wait for it."""
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
