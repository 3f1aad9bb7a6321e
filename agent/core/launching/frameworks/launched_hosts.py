"""What programs need that rank 0 runs, and that start processes of theirs in the other executions."""

from collections.abc import Mapping

from agent.core.launching.site import LaunchSite
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import HOSTFILE, Roster
from muster.domain.jobs.frameworks.framework import processes_of

HYDRA_HOSTFILE = "hostfile.mpich"
MACHINEFILE = "machinefile"

_REMOTE_SHELL = "muster-rsh"
_WAITING = ("muster-inside", "wait")


def host_files(who: Assignment, roster: Roster) -> Mapping[str, bytes]:
    """The executions by rank, each with its processes, as one MPI or another reads them.

    They are addresses, as Open MPI 4 asks the DNS for every name, and waits 5 s where it has no answer. The first is
    rank 0's own: there, mpirun starts the processes itself.
    """
    hosts = list(zip(roster.addresses, (processes_of(who.framework, gpus) for gpus in roster.gpu_counts), strict=True))
    return {
        HOSTFILE: "".join(map("%s slots=%d\n".__mod__, hosts)).encode(),
        HYDRA_HOSTFILE: "".join(map("%s:%d\n".__mod__, hosts)).encode(),
        MACHINEFILE: "".join(f"{address}\n" * processes for address, processes in hosts).encode(),
    }


def remote_shell(site: LaunchSite) -> str:
    """The program that starts a daemon in another execution as ssh would, and outlives a restart of the agent."""
    return f"{site.programs}/{_REMOTE_SHELL}"


def in_place_of_command(who: Assignment, site: LaunchSite) -> tuple[str, ...]:
    """The words that an execution runs which only takes in what rank 0 starts; none for rank 0."""
    program, *words = _WAITING
    return (f"{site.programs}/{program}", *words) if who.rank else ()
