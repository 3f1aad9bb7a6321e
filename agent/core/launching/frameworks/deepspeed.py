"""DeepSpeed: its launcher on rank 0 starts the processes of all executions, or one in each execution starts its own."""

from dataclasses import replace

from agent.core.launching.frameworks.launched_hosts import host_files
from agent.core.launching.frameworks.mpi import mpi
from agent.core.launching.frameworks.pytorch import pytorch
from agent.core.launching.frameworks.surroundings import Surroundings
from agent.core.launching.site import LaunchSite
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import Roster
from muster.domain.jobs.frameworks.framework import Framework


def deepspeed(who: Assignment, framework: Framework, roster: Roster, site: LaunchSite) -> Surroundings:
    """The hosts, and the way to them where rank 0 launches; otherwise what torchrun finds, which can launch it, too."""
    torch = pytorch(who, framework, roster)
    if not framework.starts_elsewhere:
        return replace(torch, files={**torch.files, **host_files(who, roster)})
    brought = mpi(who, roster, site)
    return replace(brought, defaults={**brought.defaults, **torch.defaults})
