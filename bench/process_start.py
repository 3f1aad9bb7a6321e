"""What it costs to start a program under a supervisor: beside a bare spawn, a shell, and an interpreter for each.

    python bench/process_start.py [--repeats 200] [--at-once 64] [-o json]

All start `/bin/true` with pipes for its output, in turn, in the same run, on this machine. `start` is from the release
until it is known that the program runs; what `prepare` and `arm` did before is shown beside it. The others are timed
until the spawned process runs, whatever it still has to do. CPU is that of all processes for one program from first to
last, the measuring one included: once for supervisors that are forked for it (`first use`), once for one that has done
the same before (`start`), as it is in an agent from its first jobs on. The memory of a supervisor is its proportional
share (PSS) beside all others.
"""

import argparse
import asyncio
import ctypes
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from agent.executions.layout import BELL
from agent.runtimes.kernel.cgroups import CgroupLimits
from agent.runtimes.process.launcher import Launcher, Supervisor
from agent.runtimes.process.order import ProgramOrder
from agent.runtimes.process.record import ProcessRecord, read_record
from agent.runtimes.process.spares import SpareSupervisors

PEERS = {
    "Popen": ["/bin/true"],
    "sh -c": ["/bin/sh", "-c", "/bin/true; exit $?"],
    "python -I -S": [sys.executable, "-I", "-S", "-c", "import os; os.spawnv(os.P_WAIT, '/bin/true', ['true'])"],
}
"""Popen is what a supervisor replaces; the others are what one might use instead of a fork of the launcher."""


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=64)
    parser.add_argument("-o", "--output", choices=["table", "json"], default="table")
    options = parser.parse_args()
    launcher = Launcher()
    with tempfile.TemporaryDirectory() as directory:
        directories = Directories(Path(directory))
        found = await one_by_one(SpareSupervisors(launcher, wanted=0), directories, options.repeats)
        found["at once"] = await at_once(launcher, directories, options.at_once)
        found["memory"] = await memory(launcher, directories, options.at_once)
        await launcher.close()
    if options.output == "json":
        print(json.dumps(found, indent=2))
        return
    for way, figures in found.items():
        print(f"{way:>14}  " + "  ".join(f"{name} {figure:.2f}" for name, figure in figures.items()))


SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER."""

NO_CGROUPS = CgroupLimits(memory=None, pids=1, cpu_millis=1000)
"""The limits of supervisors that are in no cgroups."""


class Directories:
    """A directory for each execution."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._count = 0

    def order(self, *command: str) -> ProgramOrder:
        """An order to run a command in a directory of its own."""
        self._count += 1
        directory = self._directory / str(self._count)
        directory.mkdir()
        return ProgramOrder(
            directory=str(directory),
            log=str(directory / "log.cri"),
            log_limit=1 << 30,
            command=command,
            path=command[0],
            env={},
            workdir="/",
        )


async def one_by_one(spares: SpareSupervisors, directories: Directories, repeats: int) -> dict[str, dict[str, float]]:
    """All ways in turn."""
    prepares: list[float] = []
    arms: list[float] = []
    starts: list[float] = []
    whole: dict[str, list[float]] = {name: [] for name in PEERS}

    async def supervised() -> None:
        begun = time.perf_counter()
        supervisor = spares.take()
        prepares.append(time.perf_counter() - begun)
        await asyncio.sleep(0.005)  # the others of a gang check in meanwhile
        order = directories.order("/bin/true")
        begun = time.perf_counter()
        await supervisor.arm(order)
        arms.append(time.perf_counter() - begun)
        await asyncio.sleep(0.005)  # and are armed
        bell = listen(order)
        begun = time.perf_counter()
        await supervisor.release()
        starts.append(time.perf_counter() - begun)
        hear_out(bell, order)
        spares.take_back(supervisor, NO_CGROUPS)

    await supervised()
    for _ in range(repeats):
        await supervised()
        for name, command in PEERS.items():
            begun = time.perf_counter()
            with spawned(command):
                whole[name].append(time.perf_counter() - begun)
    found = {"prepare": spread(prepares[1:]), "arm": spread(arms[1:]), "start": spread(starts[1:])}
    found.update({name: spread(values) for name, values in whole.items()})
    for name, command in PEERS.items():
        found[name]["CPU ms"] = spawn_cpu(command, repeats)
    found["first use"], found["start"]["CPU ms"] = await supervised_cpu(directories, repeats)
    return found


def spawned(command: list[str]) -> "subprocess.Popen[bytes]":
    """Start a command as a supervisor does it."""
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True)


def spawn_cpu(command: list[str], repeats: int) -> float:
    """CPU of the children and of making them, for each."""
    before = _cpu(resource.RUSAGE_CHILDREN) + _cpu(resource.RUSAGE_SELF)
    for _ in range(repeats):
        with spawned(command) as process:
            process.communicate()
    return (_cpu(resource.RUSAGE_CHILDREN) + _cpu(resource.RUSAGE_SELF) - before) / repeats * 1000


async def supervised_cpu(directories: Directories, count: int) -> tuple[dict[str, float], float]:
    """CPU of supervisors, launcher and this process, for each: of new supervisors, and of one that goes on.

    The launcher does not wait for supervisors, so nobody would be told what they used; without a launcher they become
    children of this process.
    """
    ctypes.CDLL(None).prctl(SUBREAPER, 1)

    async def run(supervisors: int, programs: int) -> float:
        before = _cpu(resource.RUSAGE_SELF) + _cpu(resource.RUSAGE_CHILDREN)
        launcher = Launcher()
        made = [launcher.make() for _ in range(supervisors)]
        for each in made:
            await each.arm(directories.order("/bin/true"))  # only now it is certain that it is there
        await launcher.close()
        for each in made:
            for _ in range(programs):
                record = await whole_program(each, directories.order("/bin/true"))
                each.renew()
            each.close()
            os.waitpid(record.supervisor.pid, 0)  # noqa: ASYNC222 (nothing else is to happen)
        return _cpu(resource.RUSAGE_SELF) + _cpu(resource.RUSAGE_CHILDREN) - before

    least = await run(1, 1)
    forked, again = await run(count + 1, 1), await run(1, count + 1)
    return {"CPU ms": (forked - least) / count * 1000}, (again - least) / count * 1000


async def whole_program(supervisor: Supervisor, order: ProgramOrder) -> ProcessRecord:
    """From the order to the end of all output."""
    await supervisor.arm(order)
    bell = listen(order)
    record = await supervisor.release()
    hear_out(bell, order)
    return record


def listen(order: ProgramOrder) -> int:
    """The bell of an order that is armed."""
    return os.open(f"{order.directory}/{BELL}", os.O_RDONLY | os.O_CLOEXEC)


def hear_out(bell: int, order: ProgramOrder) -> None:
    """Wait until its supervisor is done with an order."""
    while os.read(bell, 1):
        record = read_record(Path(order.directory))
        if record is not None and record.complete:
            break
    os.close(bell)


async def arm(launcher: Launcher, order: ProgramOrder) -> Supervisor:
    """All but the start."""
    supervisor = launcher.make()
    await supervisor.arm(order)
    return supervisor


async def at_once(launcher: Launcher, directories: Directories, count: int) -> dict[str, float]:
    """Many armed, then released together."""
    armed = await asyncio.gather(*(arm(launcher, directories.order("/bin/true")) for _ in range(count)))
    begun = time.perf_counter()
    started: list[float] = []

    async def release(each: Supervisor) -> None:
        await each.release()
        started.append(time.perf_counter() - begun)

    await asyncio.gather(*map(release, armed))
    return {"programs": count, "median ms": statistics.median(started) * 1000, "last ms": max(started) * 1000}


async def memory(launcher: Launcher, directories: Directories, count: int) -> dict[str, float]:
    """Memory of one supervisor among many, while their programs run."""
    armed = [await arm(launcher, directories.order("/bin/sleep", "1000")) for _ in range(count)]
    records = [await each.release() for each in armed]
    shares = [_share(each.supervisor.pid) for each in records]
    for each in records:
        assert each.program is not None
        each.program.kill()
    return {"supervisors": count, "median PSS MiB": statistics.median(shares), "all PSS MiB": sum(shares)}


def _share(pid: int) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def spread(values: list[float]) -> dict[str, float]:
    """What a row shows of several runs, in milliseconds."""
    ordered = sorted(values)
    median, p90 = statistics.median(ordered), ordered[int(len(ordered) * 0.9)]
    return {"min ms": ordered[0] * 1000, "median ms": median * 1000, "p90 ms": p90 * 1000}


if __name__ == "__main__":
    asyncio.run(main())
