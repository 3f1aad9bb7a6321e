"""Executions in containers whose agent is restarted: begun by one runtime, found by the next."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path

import pytest

from agent.executions.layout import ExecutionDirectory
from agent.logs.spool import LogSpool
from muster.domain.gangs.plan import Assignment
from muster.domain.jobs.failure import ExecutionError
from tests.contract.docker_place import DockerPlace
from tests.contract.runtimes import Trial, directory_for, ignored, launch_for

WAITS = "trap 'exit 3' TERM; echo ready; while [ ! -e /muster/outputs/go ]; do sleep 0.02; done; echo went; exit 5"


async def begin(place: DockerPlace, directory: Path, assignment: Assignment, *steps: str) -> None:
    """Bring an execution so far, then end as an agent ends that is killed: nothing is tidied up."""
    own = directory_for(directory, assignment.execution)
    with closing(LogSpool(own.log)) as spool:
        async with place.runtime() as runtime:
            sandbox = await runtime.prepare(assignment, own, spool, (), ignored)
            if "arm" in steps:
                await sandbox.arm(launch_for(assignment))
            if "start" in steps:
                await sandbox.start()


@asynccontextmanager
async def recovered(place: DockerPlace, directory: Path, assignment: Assignment) -> AsyncIterator[tuple[Trial, bool]]:
    """The only execution that an agent finds when it starts again, and whether it was started."""
    with ExitStack() as after_the_runtime:
        async with place.runtime() as runtime:
            [(sandbox, spool, started)] = await runtime.recover(directory / "executions")
            after_the_runtime.callback(spool.close)
            own = ExecutionDirectory(directory / "executions", assignment.execution)
            yield Trial(sandbox, spool, own, launch_for(assignment)), started


async def failure_of(trial: Trial) -> ExecutionError:
    with pytest.raises(ExecutionError) as caught:
        await trial.sandbox.exited()
    return caught.value
