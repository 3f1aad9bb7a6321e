"""Commands from one execution of a gang in another: muster-exec, and mpirun that starts its daemons through the agents.

Rank 0 of a job with `framework: mpi` times them by itself, one after the other in turns. Beside mpirun through the
agents stands the same mpirun whose remote shell is a script that starts the daemon here, which ssh cannot be faster
than. It is that of MPICH: that of Open MPI 5 waits for ever in one of 60 runs where several of its daemons share a
machine, with any remote shell.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bench.figures import Bar
from bench.fleet import Fleet, fleet, gang
from bench.scratch import PROGRAMS
from bench.setting import Setting
from muster.domain.jobs.frameworks.framework import Framework, FrameworkName

FEW, MANY = 4, 16
"""Executions, each on a node of its own."""
TIMER = PROGRAMS / "time_commands.py"
ELSEWHERE, HERE, BARE = "muster-exec on another node", "muster-exec on the same node", "the program alone"
EXEC_BAR = Bar(figure="muster-exec RANK true, on another node", limit=15, unit="ms")
MPIRUN = "mpirun hostname, {} executions through agents"
MANY_BAR = Bar(figure=MPIRUN.format(MANY), limit=150, unit="ms")
WITHOUT = f"mpirun hostname, {FEW} daemons through a script"
MPIRUN_BAR = Bar(figure=f"mpirun hostname, {FEW} executions: through agents / through a script", limit=2.5)
REMOTE_SHELL = """#!/bin/sh
# `-x HOST WORDS`, as MPICH calls ssh.
shift 2
exec /bin/sh -c "$*"
"""


async def measure(setting: Setting) -> None:
    """Commands, and mpirun where there is one."""
    has_mpi = setting.has("mpi")
    async with fleet(setting.scratch, MANY) as muster:
        await setting.quiet("commands in other executions; mpirun through agents")
        timed = Timed(setting, muster)
        commands = {BARE: ["true"], HERE: ["muster-exec", "0", "true"], ELSEWHERE: ["muster-exec", "1", "true"]}
        await timed.take(2, commands, turns=setting.repeats(100, 20))
        setting.findings.absolute(EXEC_BAR, ELSEWHERE)
        if has_mpi:
            mpirun = str(setting.scratch.python.with_name("mpirun"))
            alone = [*_without_agents(setting.scratch.fresh("mpirun")), mpirun, "-n", str(FEW), "hostname"]
            for size in (FEW, MANY):
                ways = {MPIRUN.format(size): [mpirun, "-n", str(size), "hostname"]}
                await timed.take(size, {**ways, WITHOUT: alone} if size == FEW else ways, turns=setting.repeats(15, 5))
            setting.findings.absolute(MANY_BAR, MPIRUN.format(MANY))
            setting.findings.ratio(MPIRUN_BAR, MPIRUN.format(FEW), WITHOUT)


def _without_agents(directory: Path) -> list[str]:
    """Words before mpirun: it finds as many hosts, and a remote shell that starts everything here."""
    shell, hosts = directory / "remote-shell", directory / "hosts"
    shell.write_text(REMOTE_SHELL, encoding="utf-8")
    shell.chmod(0o755)
    hosts.write_text("".join(f"127.0.1.{number}:1\n" for number in range(1, FEW + 1)), encoding="utf-8")
    told = {"HYDRA_LAUNCHER": "ssh", "HYDRA_LAUNCHER_EXEC": shell, "HYDRA_HOST_FILE": hosts}
    return ["env", "-i", f"PATH={os.defpath}", *(f"{name}={value}" for name, value in told.items())]


class Timed:
    """Has rank 0 of jobs time commands."""

    def __init__(self, setting: Setting, muster: Fleet) -> None:
        self._findings = setting.findings
        self._muster = muster
        self._directory = setting.scratch.fresh("commands")

    async def take(self, size: int, commands: Mapping[str, Sequence[str]], turns: int) -> None:
        """Take the milliseconds of each command as a series; the first turn warms up."""
        asked, told = self._directory / f"{size}.json", self._directory / f"{size}.found.json"
        asked.write_text(json.dumps(commands), encoding="utf-8")
        job = gang(size, "/usr/bin/python3", TIMER, asked, told, str(turns))
        framework = Framework(name=FrameworkName.MPI, processes=1)
        submitted = await self._muster.client.jobs.submit(replace(job, framework=framework))
        await self._muster.ended(submitted.id)
        for name, values in _found(told).items():
            self._findings.take(name, values, "ms")
        await self._muster.settled(submitted.id)


def _found(file: Path) -> Mapping[str, list[float]]:
    found: Mapping[str, list[float]] = json.loads(file.read_text(encoding="utf-8"))
    return found
