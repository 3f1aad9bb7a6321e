"""What keeps the processes of an execution apart from others: a user, and cgroups with limits."""

import logging
from collections.abc import Collection
from dataclasses import dataclass, field

from agent.logs.spool import LogSpool
from agent.runtimes.kernel.cgroups import CgroupLimits, Cgroups
from agent.runtimes.process.order import Groups
from muster.domain.gangs.plan import Assignment
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import DEFAULT_PIDS

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confined:
    """How the processes of an execution are told from all others."""

    own_user: int | None = None
    """The user that nothing else runs as; None: there is none."""
    cgroups: Cgroups = field(default_factory=lambda: Cgroups((), ""))


def confine(cgroups: Cgroups, assignment: Assignment, spool: LogSpool) -> Groups:
    """Make the cgroups of an execution; its log says which limits that were asked for do not hold.

    Raises ExecutionError.
    """
    resources, pids = assignment.role.resources, assignment.role.security.pids
    asked = {"memory": resources.memory is not None, "pids": pids is not None}
    missing = [name for name, given in asked.items() if given and name not in cgroups.limiting]
    if missing:
        words = {"memory": "resources.memory only reserves", "pids": "security.pids does not hold"}
        spool.mark(f"{' and '.join(words[each] for each in missing)} here: this node has no cgroups with such limits")
    limits = CgroupLimits(memory=resources.memory, pids=pids or DEFAULT_PIDS, cpu_millis=resources.cpu_millis)
    try:
        return cgroups.make(assignment.execution, limits)
    except OSError as error:
        cgroups.remove(assignment.execution)
        message = f"cannot make the cgroup {error.filename}: {error.strerror}"
        raise ExecutionError(FailureKind.RUNTIME, message) from error


def clear_strangers(cgroups: Cgroups, known: Collection[ExecutionId]) -> None:
    """End what runs in cgroups of this node whose execution nobody knows of any more."""
    for group, members in cgroups.strangers(known).items():
        if members:
            facts = {"cgroup": group, "processes": len(members)}
            log.warning("processes of an execution that is not known any more are ended", extra=facts)
        cgroups.clear(group)
