"""What a job is silent about and gets all the same, before anybody stores or shows it."""

from dataclasses import replace

from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import SuccessRule


def filled_in(spec: JobSpec) -> JobSpec:
    """The job with everything said that follows from what it says; harmless when repeated."""
    return spec if spec.success is not None else replace(spec, success=SuccessRule.ALL)
