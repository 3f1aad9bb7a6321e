"""What is known of an execution before it has its data, for placeholders."""

from coordinator.core.records import Execution, Job
from muster.domain.jobs.placeholders import EarlyValues


def early_values(job: Job, execution: Execution) -> EarlyValues:
    """The values of an execution as its agent has them, too."""
    spec = job.spec
    role, ranks = next(each for each in spec.ranks_by_role() if execution.rank in each[1])
    return EarlyValues(
        job=job.id,
        project=spec.project,
        attempt=execution.attempt,
        role=role.name,
        role_rank=ranks.index(execution.rank),
        rank=execution.rank,
        world_size=spec.size,
    )
