"""What keeps the processes of an execution apart from others: a user, and cgroups with limits."""

import json
import logging
import os
from collections.abc import Collection
from dataclasses import dataclass, field

from agent.executions.layout import CGROUPS, ExecutionDirectory
from agent.logs.spool import LogSpool
from agent.runtimes.kernel.cgroups import CgroupLimits, Cgroups
from agent.runtimes.process.launcher import Supervisor
from agent.runtimes.process.order import Groups, paths_of
from muster.domain.gangs.plan import Assignment
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import DEFAULT_PIDS, Role

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Confined:
    """How the processes of an execution are told from all others."""

    own_user: int | None = None
    """The user that nothing else runs as; None: there is none."""
    cgroups: Cgroups = field(default_factory=lambda: Cgroups((), ""))
    groups: tuple[str, ...] = ()
    """The cgroups in which nothing else runs."""


def confine(
    cgroups: Cgroups, assignment: Assignment, directory: ExecutionDirectory, spool: LogSpool, supervisor: Supervisor
) -> Groups:
    """Have the supervisor in cgroups with the limits of an execution; made in less time than a thread costs.

    The execution's log says which limits that were asked for do not hold. Raises ExecutionError.
    """
    resources, pids = assignment.role.resources, assignment.role.security.pids
    asked = {
        "memory": resources.most_memory is not None,
        "cpu": resources.cpu_limit is not None,
        "pids": pids is not None,
    }
    missing = [name for name, given in asked.items() if given and name not in cgroups.limiting]
    if missing:
        memory = "memory only reserves" if resources.memory_limit is None else "memory_limit does not hold"
        words = {
            "memory": f"resources.{memory}",
            "cpu": "resources.cpu_limit does not hold",
            "pids": "security.pids does not hold",
        }
        spool.mark(f"{' and '.join(words[each] for each in missing)} here: this node has no cgroups with such limits")
    limits = limits_of(assignment.role)
    groups = supervisor.groups
    try:
        if not groups and (groups := cgroups.make(limits)):
            supervisor.enter(groups)
        cgroups.limit(paths_of(groups), limits)
        if groups:
            note(directory, paths_of(groups))
    except OSError as error:
        supervisor.close()
        cgroups.remove(paths_of(groups))
        message = f"cannot make the cgroup {error.filename}: {error.strerror}"
        raise ExecutionError(FailureKind.RUNTIME, message) from error
    return groups


def limits_of(role: Role) -> CgroupLimits:
    """The limits that cgroups of an execution of this role have."""
    resources, pids = role.resources, role.security.pids
    return CgroupLimits(
        memory=resources.most_memory,
        pids=pids or DEFAULT_PIDS,
        cpu_millis=resources.cpu_millis,
        cpu_limit=resources.cpu_limit,
    )


def note(directory: ExecutionDirectory, groups: tuple[str, ...]) -> None:
    """Have the next agent know the cgroups of an execution, whatever becomes of its record. Raises OSError."""
    it = os.open(f"{directory.path}/{CGROUPS}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(it, json.dumps(groups).encode())
    finally:
        os.close(it)


def noted_groups(directory: ExecutionDirectory) -> tuple[str, ...]:
    """The cgroups of an execution, also one of an earlier agent; none where it had none, or the note is damaged."""
    try:
        return tuple(map(str, json.loads((directory.path / CGROUPS).read_bytes())))
    except (OSError, ValueError, TypeError):
        return ()


def clear_strangers(cgroups: Cgroups, known: Collection[str]) -> None:
    """End what runs in cgroups that earlier agents of this node made and nobody knows of any more."""
    for group, members in cgroups.strangers(known).items():
        if members:
            facts = {"cgroup": group, "processes": len(members)}
            log.warning("processes of an execution that is not known any more are ended", extra=facts)
        cgroups.clear(group)
