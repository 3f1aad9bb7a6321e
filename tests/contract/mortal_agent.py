"""An agent to be killed: starts programs or adopts those of the one before it, and says how much they have printed.

    python -m tests.contract.mortal_agent DIRECTORY [SCRIPT ...]

Prints `armed` when all are held, `started` when all run, and then the size of all logs each time that one grows.
"""

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

from agent.logs.spool import LogSpool
from agent.runtimes.process.runtime import ProcessRuntime
from muster.domain.ids import ExecutionId
from muster.domain.jobs.job import Role
from tests.contract.runtimes import assignment_for, directory_for, ignored, launch_for, shell


async def main(directory: Path, *scripts: str) -> None:
    runtime = ProcessRuntime()
    spools = [spool for _, spool, _ in await runtime.recover(directory / "executions")]
    sandboxes = []
    for number, script in enumerate(scripts):
        # A name that no other run of the tests on this machine gives.
        execution = ExecutionId(f"mortal{os.getpid()}-1-{number}")
        assignment = replace(assignment_for(Role(command=shell(script))), execution=execution)
        own = directory_for(directory, assignment.execution)
        spools.append(LogSpool(own.log))
        sandboxes.append(await runtime.prepare(assignment, own, spools[-1], (), ignored))
        await sandboxes[-1].arm(launch_for(assignment))
    print("armed", flush=True)
    if not sys.stdin.readline():
        return
    for sandbox in sandboxes:
        await sandbox.start()
    print("started", flush=True)
    async with asyncio.TaskGroup() as tasks:
        for spool in spools:
            tasks.create_task(tell(spool, spools), name="tell")


async def tell(spool: LogSpool, spools: list[LogSpool]) -> None:
    while True:
        print(sum(each.size for each in spools), flush=True)
        spool.grew.clear()
        await spool.grew.wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), *sys.argv[2:]))
