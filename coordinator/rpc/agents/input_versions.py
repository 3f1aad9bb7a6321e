"""How the nodes of a job agree on what its inputs hold."""

from collections.abc import Sequence

from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import InputsFound
from coordinator.engine.engine import Engine
from coordinator.rpc.agents.entitled import entitled_to
from coordinator.trust.caller import Caller
from muster.domain.data.job_input import FoundInput
from muster.domain.errors import InvalidJobError, UnknownNameError
from muster.domain.ids import ExecutionId, JobId


class InputVersions:
    """Takes what nodes have found, and tells them what counts: the first word on each URL of a job."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def told(self, who: Caller, id_: ExecutionId, found: Sequence[FoundInput]) -> tuple[FoundInput, ...]:
        """What counts for the inputs of an execution's role, once it is durable.

        Raises UnknownNameError, PermissionDeniedError, ConflictError, or InvalidJobError for URLs of another job.
        """
        _, role = await entitled_to(self._engine, who, id_, "inputs")
        urls = {each.url for each in role.inputs}
        if any(each.url not in urls for each in found):
            raise InvalidJobError(f"the role of execution {id_} has no input with such a URL")
        job = await self._engine.query(lambda cluster, _: _job_of(cluster, id_))
        if found:
            await self._engine.apply(InputsFound(job=job, found=tuple(found)))
        return await self._engine.query(
            lambda cluster, _: (
                tuple(each for each in cluster.jobs[job].inputs if each.url in urls) if job in cluster.jobs else ()
            )
        )


def _job_of(cluster: Cluster, id_: ExecutionId) -> JobId:
    execution = cluster.executions.get(id_)
    if execution is None:
        raise UnknownNameError(f"there is no execution {id_}")
    return execution.job
