"""What is known of an execution before it has its data, for placeholders."""

from coordinator.core.records import Execution, Job
from muster.domain.jobs.placeholders import EarlyValues


def early_values(job: Job, execution: Execution) -> EarlyValues:
    """The values of an execution as its agent has them, too."""
    spec, role = job.spec, job.spec.role_of(execution.rank)
    first = spec.roles.index(role)
    return EarlyValues(
        job=job.id,
        project=spec.project,
        attempt=execution.attempt,
        role=role.name,
        role_rank=execution.rank - sum(each.count for each in spec.roles[:first]),
        rank=execution.rank,
        world_size=spec.size,
    )
