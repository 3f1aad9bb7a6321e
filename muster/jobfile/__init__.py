"""Job files: YAML in, checked `JobSpec` out, with every problem of a file told at once and where it is.

Importing this package is cheap; what reads YAML is imported when the first file is read.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from muster.domain.jobs.job import JobSpec
from muster.jobfile.errors import FieldError, JobFileError, Problem

__all__ = [
    "FieldError",
    "JobFileError",
    "Problem",
    "dump_job",
    "job_from",
    "job_schema",
    "load_job",
    "load_jobs",
    "refused_in_file",
    "refused_in_values",
]


def load_job(
    text: str,
    source: str,
    *,
    base: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> JobSpec:
    """The job that a file describes; raises JobFileError with all its problems.

    `source` names the file in messages. `base` is the directory against which `files[].source` is read; None
    refuses such files. `overrides` replaces values by dotted key (`resources.gpus`, `roles[0].count`): text is read
    as if it stood in the file, other values are taken as they are, and null takes a key away.
    """
    from muster.jobfile.load import from_text  # noqa: PLC0415 - YAML and models only when a job is read

    return from_text(text, source, base=base, overrides=overrides or {})


def load_jobs(
    text: str,
    source: str,
    *,
    base: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> tuple[tuple[int, JobSpec], ...]:
    """The jobs that the documents of a file describe, each with its first line; otherwise as `load_job`."""
    from muster.jobfile.load import all_from_text  # noqa: PLC0415 - as above

    return all_from_text(text, source, base=base, overrides=overrides or {})


def job_from(
    document: Mapping[str, Any],
    source: str,
    *,
    base: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> JobSpec:
    """The job that plain values describe, with the keys of a job file; raises JobFileError without positions.

    `base` and `overrides` are those of `load_job`.
    """
    from muster.jobfile.plain import plain_job  # noqa: PLC0415 - YAML and models only when a job is read

    plain = None if overrides else plain_job(document)
    if plain is not None:
        return plain
    from muster.jobfile.load import from_values  # noqa: PLC0415 - YAML and models only when a job is read

    return from_values(document, source, base=base, overrides=overrides or {})


def refused_in_file(
    message: str,
    source: str,
    text: str,
    *,
    number: int = 0,
    base: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> JobFileError | None:
    """What a coordinator refuses of job `number` (from 0) of a file, with its lines; None where it names no key.

    The other arguments are those with which the job was loaded.
    """
    from muster.jobfile import load  # noqa: PLC0415 - YAML and models only when a job is read

    return load.refused_in_file(message, source, text, number=number, base=base, overrides=overrides or {})


def refused_in_values(
    message: str,
    source: str,
    document: Mapping[str, Any],
    *,
    base: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> JobFileError | None:
    """The same for a job from plain values, in the words of a job file without roles."""
    from muster.jobfile import load  # noqa: PLC0415 - as above

    return load.refused_in_values(message, source, document, base=base, overrides=overrides or {})


def job_schema() -> dict[str, Any]:
    """The JSON Schema of job files, for editors."""
    from muster.jobfile.schema import schema  # noqa: PLC0415 - YAML and models only when a job is read

    return schema()


def dump_job(spec: JobSpec) -> dict[str, Any]:
    """The job with all its settings spelled out, as plain values that load again to an equal JobSpec."""
    from muster.jobfile.dump import dump  # noqa: PLC0415 - YAML and models only when a job is read

    return dump(spec)
