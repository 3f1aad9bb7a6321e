"""The frameworks that an execution can be launched for."""

from collections.abc import Callable, Mapping

from agent.core.launching.frameworks.boosting import LIGHTGBM_PORT, lightgbm, xgboost
from agent.core.launching.frameworks.deepspeed import deepspeed
from agent.core.launching.frameworks.horovod import horovod
from agent.core.launching.frameworks.jax import jax
from agent.core.launching.frameworks.mpi import mpi
from agent.core.launching.frameworks.pytorch import pytorch
from agent.core.launching.frameworks.ray import RAY_PORT, ray
from agent.core.launching.frameworks.surroundings import Surroundings
from agent.core.launching.frameworks.tensorflow import TENSORFLOW_PORT, tensorflow
from agent.core.launching.site import LaunchSite
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import Roster
from muster.domain.jobs.frameworks.framework import Framework, FrameworkName
from muster.domain.jobs.job import PortRequest

_PORTS = {
    FrameworkName.TENSORFLOW: TENSORFLOW_PORT,
    FrameworkName.LIGHTGBM: LIGHTGBM_PORT,
    FrameworkName.RAY: RAY_PORT,
}

_SURROUNDINGS: Mapping[FrameworkName, Callable[[Assignment, Framework, Roster, LaunchSite], Surroundings]] = {
    FrameworkName.PYTORCH: lambda who, framework, roster, _: pytorch(who, framework, roster),
    FrameworkName.TENSORFLOW: lambda who, _, roster, __: tensorflow(who.rank, roster),
    FrameworkName.JAX: lambda who, _, roster, __: jax(who, roster),
    FrameworkName.XGBOOST: lambda who, _, roster, __: xgboost(who.rank, roster),
    FrameworkName.LIGHTGBM: lambda _, __, roster, ___: lightgbm(roster),
    FrameworkName.DEEPSPEED: deepspeed,
    FrameworkName.MPI: lambda who, _, roster, site: mpi(who, roster, site),
    FrameworkName.HOROVOD: lambda who, _, roster, site: horovod(who, roster, site),
    FrameworkName.RAY: lambda who, _, roster, site: ray(who, roster, site),
}


def surroundings(who: Assignment, roster: Roster, site: LaunchSite) -> Surroundings:
    """What the framework of its job brings to an execution; nothing for a job without one."""
    if who.framework is None:
        return Surroundings()
    return _SURROUNDINGS[who.framework.name](who, who.framework, roster, site)


def with_framework_port(who: Assignment, requests: tuple[PortRequest, ...]) -> tuple[PortRequest, ...]:
    """The ports of an execution with the one at which its framework listens, unless the job asks for it itself."""
    name = None if who.framework is None else _PORTS.get(who.framework.name)
    if name is None or any(request.name == name for request in requests):
        return requests
    return (*requests, PortRequest(name=name))
