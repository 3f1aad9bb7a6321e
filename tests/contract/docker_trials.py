"""Trials of one execution in a container, with everything that only containers have."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.logs.spool import LogSpool
from agent.runtimes.docker.runtime import DockerRuntime
from agent.runtimes.runtime import Progress
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import PortLease
from muster.domain.ids import GpuUuid
from muster.domain.jobs.failure import ExecutionError
from muster.domain.jobs.job import Network, Role
from tests.contract.docker_place import DockerPlace
from tests.contract.runtimes import Trial, assignment_for, directory_for, ignored, launch_for, shell


def script(text: str, **options: Any) -> Role:
    """A role whose containers run a shell script in the test image."""
    return replace(Role(command=shell(text), image=DockerPlace.image), **options)


def assigned(role: Role, *, network: Network = Network.HOST, gpus: Sequence[str] = ()) -> Assignment:
    """An execution of that role, with GPUs given to it."""
    return replace(assignment_for(role, network), gpus=tuple(map(GpuUuid, gpus)))


@asynccontextmanager
async def prepared(
    runtime: DockerRuntime,
    directory: Path,
    assignment: Assignment,
    *,
    ports: Sequence[PortLease] = (),
    progress: Progress = ignored,
) -> AsyncIterator[Trial]:
    """The execution prepared in its directory; it is removed at the end."""
    own = directory_for(directory, assignment.execution)
    with closing(LogSpool(own.log)) as spool:
        sandbox = await runtime.prepare(assignment, own, spool, ports, progress)
        try:
            yield Trial(sandbox, spool, own, launch_for(assignment))
        finally:
            await sandbox.remove()


async def refusal(place: DockerPlace, directory: Path, assignment: Assignment, **settings: Any) -> ExecutionError:
    """The error with which preparing ends; nothing of the execution may be left."""
    async with place.runtime(**settings) as runtime:
        with pytest.raises(ExecutionError) as caught:
            async with prepared(runtime, directory, assignment):
                pass
    assert await place.left(assignment.execution) == []
    return caught.value
