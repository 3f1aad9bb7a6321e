"""Host names of executions, as ssh has them: `muster-JOB`, and `muster-JOB.2` for rank 2."""

from dataclasses import dataclass

from muster.domain.errors import InvalidJobError
from muster.domain.jobs.rules import job_values

HOST_PATTERN = "muster-*"
"""Fits every name that `name_of_host` makes."""

_LONGEST_RANK = len(str(job_values.MAX_EXECUTIONS))
_PREFIX = HOST_PATTERN.removesuffix("*")


@dataclass(frozen=True, slots=True, kw_only=True)
class SshHost:
    """The execution that a host name stands for."""

    job: str
    """Id, beginning of an id, or name."""
    rank: int | None = None
    """None: the lowest that runs."""


def host_of_name(name: str) -> SshHost:
    """The execution that a host name stands for; raises InvalidJobError.

    Neither an id nor a name of a job has a dot, so what follows the first dot is the rank.
    """
    found = name.removeprefix(_PREFIX)
    job, dot, rank = found.partition(".")
    if found == name or not job:
        raise InvalidJobError(f"{name!r} is no host of Muster; write {_PREFIX}JOB, or {_PREFIX}JOB.2 for rank 2")
    if wrong := job_values.label(job):
        raise InvalidJobError(f"{job!r} in the host {name!r} is neither an id nor a name of a job: {wrong.message}")
    if not dot:
        return SshHost(job=job)
    if not (rank.isascii() and rank.isdecimal() and len(rank) <= _LONGEST_RANK):
        raise InvalidJobError(f"the rank in the host {name!r} must be a number, like {_PREFIX}{job}.2")
    return SshHost(job=job, rank=int(rank))


def name_of_host(host: SshHost) -> str:
    """The host name that stands for an execution; raises InvalidJobError for a job that there cannot be."""
    name = f"{_PREFIX}{host.job}" if host.rank is None else f"{_PREFIX}{host.job}.{host.rank}"
    if host_of_name(name) != host:
        raise InvalidJobError(f"{host.job!r} is neither an id nor a name of a job")
    return name
