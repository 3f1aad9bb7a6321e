"""Orders about one job: when it may be placed, and what it is changed to. Also how any order is carried out."""

from collections.abc import Callable, Sequence

from coordinator.core.answers import Accepted
from coordinator.core.events import (
    ChangeRequested,
    DeleteRequested,
    HoldRequested,
    ResumeRequested,
    StopRequested,
    SuspendRequested,
    UnholdRequested,
)
from coordinator.core.records import Job
from coordinator.engine.engine import Engine, Freshness
from coordinator.service.causes import answer_to
from coordinator.service.finding import resolved
from coordinator.service.operations import Operation, Operations
from coordinator.trust.caller import Caller
from coordinator.views.jobs import job_view, resolve
from muster.domain.fleet.access import Access
from muster.domain.fleet.policies.policy import JobPolicy
from muster.domain.jobs.queueing.change import JobChange
from muster.domain.jobs.view import JobView
from muster.jobfile.policies import refuse_broken_policies

JobOrder = (
    StopRequested
    | DeleteRequested
    | HoldRequested
    | UnholdRequested
    | SuspendRequested
    | ResumeRequested
    | ChangeRequested
)
"""An order about one job, which is answered with that job."""


async def applied(engine: Engine, order: JobOrder) -> Job:
    """The record of the job after an order to it; raises an error if the order was refused."""
    answer = await answer_to(engine, order)
    assert isinstance(answer, Accepted)
    return answer.job


async def ordered(engine: Engine, order: JobOrder) -> JobView:
    """The job after an order to it; raises an error if the order was refused."""
    job = await applied(engine, order)
    return await engine.query(lambda cluster, _: job_view(cluster, resolve(cluster, job.id)), after=Freshness.COMMITTED)


class JobOrders:
    """What callers may say of when a job is placed; a job is named by its id, the beginning of one, or its name."""

    def __init__(
        self,
        operations: Operations,
        engine: Engine,
        policies_of: Callable[[str], Sequence[JobPolicy]] = lambda _: (),
    ) -> None:
        """`policies_of`: the policies that jobs of a project keep."""
        self._operations = operations
        self._engine = engine
        self._policies_of = policies_of

    async def hold(self, caller: Caller, name: str) -> JobView:
        """Keep a job out of the queue until it is released; the job as it is then.

        An operator who holds the job of somebody else does so as an operator: only operators release it.
        """
        async with self._operations.begin(caller, "jobs.hold", name) as operation:
            job = await self._named(operation, name)
            by_operator = job.owner != caller.name and caller.may(Access.OPERATOR, job.spec.project)
            return await ordered(
                self._engine, HoldRequested(job=job.id, by_operator=by_operator, cause=operation.cause)
            )

    async def unhold(self, caller: Caller, name: str) -> JobView:
        """Release a job that is held; the job as it is then."""
        async with self._operations.begin(caller, "jobs.unhold", name) as operation:
            job = await self._named(operation, name)
            by_operator = caller.may(Access.OPERATOR, job.spec.project)
            return await ordered(
                self._engine, UnholdRequested(job=job.id, by_operator=by_operator, cause=operation.cause)
            )

    async def suspend(self, caller: Caller, name: str) -> JobView:
        """Stop a job, and keep its next attempt out of the queue until it is resumed; the job as it is then."""
        async with self._operations.begin(caller, "jobs.suspend", name) as operation:
            return await ordered(
                self._engine, SuspendRequested(job=(await self._named(operation, name)).id, cause=operation.cause)
            )

    async def resume(self, caller: Caller, name: str) -> JobView:
        """Let a suspended job go on; the job as it is then."""
        async with self._operations.begin(caller, "jobs.resume", name) as operation:
            return await ordered(
                self._engine, ResumeRequested(job=(await self._named(operation, name)).id, cause=operation.cause)
            )

    async def change(self, caller: Caller, name: str, change: JobChange) -> JobView:
        """Make a job other than it was submitted; the job as it is then. What it broke of policies before it may."""
        async with self._operations.begin(caller, "jobs.change", name) as operation:
            job = await self._named(operation, name)
            refuse_broken_policies(change.applied(job.spec), self._policies_of(job.spec.project), job.spec)
            event = ChangeRequested(job=job.id, change=change, cause=operation.cause)
            return await ordered(self._engine, event)

    async def _named(self, operation: Operation, name: str) -> Job:
        """The job that the caller means; raises an error unless the caller may give it orders."""
        return await self._engine.query(
            lambda cluster, _: cluster.jobs[resolved(operation, cluster, name)], after=Freshness.COMMITTED
        )
