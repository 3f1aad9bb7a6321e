"""MPI: rank 0's mpirun finds all hosts, and starts its daemons there through the agents, so that no sshd is needed."""

from agent.core.launching.frameworks.launched_hosts import (
    HYDRA_HOSTFILE,
    host_files,
    in_place_of_command,
    remote_shell,
)
from agent.core.launching.frameworks.surroundings import OWN_VARIABLES, Surroundings
from agent.core.launching.site import LaunchSite
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import HOSTFILE, Roster

LARGEST_STAR = 64
"""Executions up to which mpirun starts every daemon itself; in larger gangs daemons start others, as in a tree."""


def mpi(who: Assignment, roster: Roster, site: LaunchSite) -> Surroundings:
    """What lets `mpirun PROGRAM` run on all executions without an option, whichever MPI it belongs to."""
    remote, hosts, hydra = remote_shell(site), f"{site.config}/{HOSTFILE}", f"{site.config}/{HYDRA_HOSTFILE}"
    open_mpi_4 = {"OMPI_MCA_plm_rsh_agent": remote, "OMPI_MCA_orte_default_hostfile": hosts}
    open_mpi_5 = {"PRTE_MCA_plm_ssh_agent": remote, "PRTE_MCA_prte_default_hostfile": hosts}
    mpich = {"HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": remote, "HYDRA_HOST_FILE": hydra}
    intel = {
        "I_MPI_HYDRA_BOOTSTRAP": "ssh",
        "I_MPI_HYDRA_BOOTSTRAP_EXEC": remote,
        "I_MPI_HYDRA_HOST_FILE": hydra,
    }
    star = {name: "1" for name in _STARS if who.world_size <= LARGEST_STAR}
    return Surroundings(
        env={**open_mpi_4, **open_mpi_5, **mpich, **intel, "PDSH_RCMD_TYPE": "ssh"},
        defaults={**dict.fromkeys(_AS_ROOT, "1"), **star, "HYDRA_ENV": "none"},
        own_variables=OWN_VARIABLES,
        files=host_files(who, roster),
        instead=in_place_of_command(who, site),
    )


_STARS = ("OMPI_MCA_plm_rsh_no_tree_spawn", "PRTE_MCA_plm_ssh_no_tree_spawn")
_AS_ROOT = (
    *("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"),
    *("PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"),
)
"""Open MPI refuses to run as root, which the user of a container may be, unless it is told twice."""
