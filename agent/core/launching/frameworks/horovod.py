"""Horovod: rank 0's horovodrun, or mpirun, starts the processes in all executions."""

from dataclasses import replace

from agent.core.launching.frameworks.mpi import mpi
from agent.core.launching.frameworks.surroundings import Surroundings
from agent.core.launching.network_defaults import interface_of
from agent.core.launching.site import LaunchSite
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import Roster

_GLOO_PATIENCE = "120"
"""Seconds in which the processes must have found each other; Horovod's own 30 are short where all load a framework."""


def horovod(who: Assignment, roster: Roster, site: LaunchSite) -> Surroundings:
    """What MPI finds, and for Horovod's Gloo the network interface."""
    brought, interface = mpi(who, roster, site), interface_of(who, site)
    gloo = {"HOROVOD_GLOO_TIMEOUT_SECONDS": _GLOO_PATIENCE}
    if interface is not None:
        gloo["HOROVOD_GLOO_IFACE"] = interface.name
    return replace(brought, defaults={**brought.defaults, **gloo})
