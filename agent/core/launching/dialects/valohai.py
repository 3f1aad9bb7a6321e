"""Valohai: the directories, variables and files of an execution of a distributed task, as valohai-utils reads them."""

import json
from collections.abc import Mapping

from agent.core.launching.frameworks.surroundings import Surroundings
from agent.core.launching.site import LaunchSite
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import Json, Roster
from muster.domain.jobs.frameworks.dialect import VALOHAI_DIRECTORY, VALOHAI_REPOSITORY
from muster.domain.jobs.job import RuntimeKind

CONTAINER_DIRECTORIES = {name: f"{VALOHAI_DIRECTORY}/{name}" for name in ("config", "inputs", "outputs")}
"""Where a container sees directories that it has anyway, by the names of these."""


def valohai(who: Assignment, roster: Roster, site: LaunchSite) -> Surroundings:
    """The variables of one execution, and what `valohai.execution()` tells of it."""
    address, rank = roster.addresses[who.rank], str(who.rank)
    env = {
        **_directories(who, site),
        "VH_JOB_ID": f"exec-{who.execution}",
        "VH_EXECUTION_ID": who.execution,
        "VH_TASK_ID": _group(who),
        "VH_PROJECT_ID": who.project,
        "VH_DIST_MEMBER_ID": rank,
        "VH_DIST_MEMBER_INDEX": rank,
        "VH_DIST_MEMBER_COUNT": str(who.world_size),
        "VH_LOCAL_IP": address,
        "VH_PUBLIC_IP": address,
    }
    told = _execution(who, roster)
    lines = "".join(f"{json.dumps(key)}: {json.dumps(value)}\n" for key, value in told.items())
    text = f"{json.dumps(told, indent=2)}\n"
    return Surroundings(env=env, files={"execution.json": text.encode(), "execution.yaml": lines.encode()})


def _directories(who: Assignment, site: LaunchSite) -> Mapping[str, str]:
    if who.role.runtime is RuntimeKind.PROCESS:
        found = {"config": site.config, "inputs": site.inputs, "outputs": site.outputs, "repository": site.workdir}
    else:
        found = {**CONTAINER_DIRECTORIES, "repository": site.workdir or VALOHAI_REPOSITORY}
    return {f"VH_{name.upper()}_DIR": path for name, path in found.items()}


def _execution(who: Assignment, roster: Roster) -> dict[str, Json]:
    """The file about the execution, in which every key begins so; times are UTC."""
    told: dict[str, Json] = {
        "execution-id": who.execution,
        "execution-counter": who.sequence,
        "execution-title": who.job_name,
        "execution-step": who.role.name,
        "execution-ctime": f"{roster.checked_in[who.rank]}+00:00",
        "execution-status": "created",
        "execution-image": who.role.image or "",
        "execution-tags": [],
        "project-id": who.project,
        "project-name": who.project,
        "task-id": _group(who),
    }
    return {f"valohai.{key}": value for key, value in told.items()}


def _group(who: Assignment) -> str:
    return f"{who.job}-{who.attempt}"
