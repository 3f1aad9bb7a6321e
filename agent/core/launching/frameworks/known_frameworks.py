"""The frameworks that an execution can be launched for."""

from typing import assert_never

from agent.core.launching.frameworks.boosting import LIGHTGBM_PORT, lightgbm, xgboost
from agent.core.launching.frameworks.jax import jax
from agent.core.launching.frameworks.pytorch import pytorch
from agent.core.launching.frameworks.ray import RAY_PORT, ray
from agent.core.launching.frameworks.surroundings import Surroundings
from agent.core.launching.frameworks.tensorflow import TENSORFLOW_PORT, tensorflow
from agent.core.launching.site import LaunchSite
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import Roster
from muster.domain.jobs.frameworks.framework import FrameworkName
from muster.domain.jobs.job import PortRequest

_PORTS = {
    FrameworkName.TENSORFLOW: TENSORFLOW_PORT,
    FrameworkName.LIGHTGBM: LIGHTGBM_PORT,
    FrameworkName.RAY: RAY_PORT,
}


def surroundings(who: Assignment, roster: Roster, site: LaunchSite) -> Surroundings:
    """What the framework of its job brings to an execution; nothing for a job without one."""
    if who.framework is None:
        return Surroundings()
    match who.framework.name:
        case FrameworkName.PYTORCH:
            return pytorch(who, who.framework, roster)
        case FrameworkName.TENSORFLOW:
            return tensorflow(who.rank, roster)
        case FrameworkName.JAX:
            return jax(who, roster)
        case FrameworkName.XGBOOST | FrameworkName.LIGHTGBM as name:
            return xgboost(who.rank, roster) if name is FrameworkName.XGBOOST else lightgbm(roster)
        case FrameworkName.RAY:
            return ray(who, roster, site)
        case unknown:
            assert_never(unknown)


def with_framework_port(who: Assignment, requests: tuple[PortRequest, ...]) -> tuple[PortRequest, ...]:
    """The ports of an execution with the one at which its framework listens, unless the job asks for it itself."""
    name = None if who.framework is None else _PORTS.get(who.framework.name)
    if name is None or any(request.name == name for request in requests):
        return requests
    return (*requests, PortRequest(name=name))
