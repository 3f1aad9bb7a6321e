"""What a job may be in which people work; `job_rules` asks it for every job."""

from collections.abc import Iterator

from muster.domain.fault import Fault
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.rules import job_values


def interactive_faults(spec: JobSpec) -> Iterator[Fault]:
    """Everything that is wrong with a job as one in which people work."""
    interactive = spec.interactive
    if interactive is None:
        return
    if spec.main_program is not None and not spec.roles[0].command:
        message = (
            "needs a command beside it: without one an interactive job only waits; muster shell opens a shell there"
        )
        yield Fault(path=(spec.main_program.value,), message=message)
    if wrong := job_values.setup(interactive.setup):
        yield Fault(path=("interactive", "setup"), message=wrong.message)
    if spec.restarts.limit:
        message = (
            f"must be 0, not {spec.restarts.limit}: an interactive job is not started again after a failure of its "
            "code, as people see it fail"
        )
        yield Fault(path=("restarts", "limit"), message=message)
    for number, role in enumerate(spec.roles):
        if role.entrypoint and not role.command:
            message = "needs a command beside it: without one an interactive job waits, and its image runs nothing"
            yield Fault(path=("roles", number, "entrypoint"), message=message)
