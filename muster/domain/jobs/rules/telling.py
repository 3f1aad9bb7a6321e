"""Says where in a job a value is wrong."""

from collections.abc import Iterator

from muster.domain.fault import Fault, Path
from muster.domain.jobs.rules.job_values import Wrong


def told(path: Path, wrong: Wrong | None) -> Iterator[Fault]:
    """The fault of the value at a path; none where nothing is wrong with it."""
    if wrong is not None:
        yield Fault(path=path, message=wrong.message, suggestion=wrong.suggestion)
