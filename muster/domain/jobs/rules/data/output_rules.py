"""What is wrong with what a role says of its outputs."""

from collections.abc import Iterator

from muster.domain.fault import Fault
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.rules import job_values as values
from muster.domain.jobs.rules.data.only_rules import only_faults
from muster.domain.jobs.rules.data.volume_rules import MIN_VOLUME
from muster.domain.jobs.rules.telling import told
from muster.domain.quantity import format_duration


def output_faults(spec: JobSpec, role: Role) -> Iterator[Fault]:
    """Everything that is wrong with the terms of a role's outputs, by paths below the role."""
    terms = role.outputs
    yield from only_faults(terms.only, ("outputs", "only"))
    if terms.limit is not None:
        yield from told(("outputs", "limit"), values.memory(terms.limit, MIN_VOLUME))
    if terms.keep is not None:
        path, wrong = ("outputs", "keep"), values.duration(terms.keep)
        yield from told(path, wrong)
        if not wrong and spec.delete_after is not None and terms.keep > spec.delete_after:
            after = format_duration(spec.delete_after)
            yield Fault(path=path, message=f"is longer than the job stays (delete_after: {after})")
