"""How the nodes of a job agree on what its inputs hold."""

from collections.abc import Sequence

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import InputsFound
from coordinator.core.records import Execution
from coordinator.engine.engine import Engine
from coordinator.rpc.agents.entitled import entitled_to
from coordinator.trust.caller import Caller
from coordinator.views.placeholders import early_values
from muster.domain.data.job_input import LONGEST_LISTING, FoundInput
from muster.domain.errors import InvalidJobError, UnknownNameError
from muster.domain.ids import ExecutionId, JobId
from muster.domain.jobs.placeholders import EarlyValues

LONGEST_LISTINGS = 4 * LONGEST_LISTING
"""Characters of all lists of objects of one job, which the coordinator keeps in memory until the job has ended."""


class InputVersions:
    """Takes what nodes have found, and tells them what counts: the first word on each URL of a job."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def told(
        self, who: Caller, id_: ExecutionId, found: Sequence[FoundInput], asked: Sequence[str] = ()
    ) -> tuple[FoundInput, ...]:
        """What counts for the inputs of an execution's role, or for those that are asked for, once it is durable.

        Raises UnknownNameError, PermissionDeniedError, ConflictError, or InvalidJobError for URLs of another job.
        """
        _, role = await entitled_to(self._engine, who, id_, "inputs")
        values = await self._engine.query(lambda cluster, _: _values_of(cluster, id_))
        urls = {one.origin for each in role.inputs for one in each.filled(values.fill).singly}
        if any(each.url not in urls for each in found):
            raise InvalidJobError(f"the role of execution {id_} has no input with such a URL")
        job = await self._engine.query(lambda cluster, _: _job_of(cluster, id_))
        if found:
            listed = await self._engine.query(lambda cluster, _: _listed(cluster, job, found))
            if listed > LONGEST_LISTINGS:
                raise InvalidJobError(
                    f"the lists of objects that are inputs of job {job} have {listed} characters, and "
                    f"{LONGEST_LISTINGS} are the most; pack the objects into fewer"
                )
            await self._engine.apply(InputsFound(job=job, found=tuple(found)))
        told = urls.intersection(asked) if asked else urls
        return await self._engine.query(
            lambda cluster, _: (
                tuple(each for each in cluster.jobs[job].inputs if each.url in told) if job in cluster.jobs else ()
            )
        )


def _listed(cluster: Cluster, job: JobId, found: Sequence[FoundInput]) -> int:
    """Characters of all lists of a job with those that were found now."""
    known = {each.url: each for each in cluster.jobs[job].inputs} if job in cluster.jobs else {}
    return sum(len(each.listing) for each in ({each.url: each for each in found} | known).values())


def _job_of(cluster: Cluster, id_: ExecutionId) -> JobId:
    return _execution(cluster, id_).job


def _values_of(cluster: Cluster, id_: ExecutionId) -> EarlyValues:
    execution = _execution(cluster, id_)
    return early_values(cluster.jobs[execution.job], execution)


def _execution(cluster: Cluster, id_: ExecutionId) -> Execution:
    execution = cluster.executions.get(id_)
    if execution is None:
        raise UnknownNameError(f"there is no execution {id_}")
    return execution
