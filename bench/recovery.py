"""How long it takes to get over a death: of a worker, and of the coordinator.

    python bench/recovery.py [--sizes 8,32] [--gangs 100] [--repeats 10] [--down 0.2,15] [--json]

Real programs on loopback: a coordinator, and one agent for each of four nodes. Workers are plain processes that say who
they are and sleep; their ends are seen through descriptors of the processes, so all times are by this program's clock.

* `others stopped`: one worker is killed (SIGKILL); from its end to that of the last other process of its gang.
* `new attempt`: from the same end to the first instruction of the last worker of the new attempt.
* `in control`: the coordinator is killed with many gangs running, and is away for some seconds (each of `--down`); from
  the start of its successor's process until it answers, every node is connected, every execution counts as running and
  none was started anew, a job that is submitted runs, and one of the gangs is stopped.

Says on stderr how far it is. The exit status is 1 if a median misses its bar, and 130 after Ctrl-C.
"""

import argparse
import asyncio
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from muster.client import Client
from muster.domain.errors import UnavailableError
from muster.domain.job import JobSpec, Packing, Resources, Role
from muster.domain.lifecycle import JobPhase
from muster.domain.node import NodeState
from muster.domain.restart import RestartPolicy
from muster.rpc.channel import Credentials
from muster.trust.files import read_secret

NODES = 4
GANG = 2
"""Executions of each gang that outlives the coordinator."""
PORTS = (20_000, 2_000)
"""First port of the first node, and how many each has."""
STEADY = 2.0
"""Seconds between one death of the coordinator and the next; agents are slow to come back to one that dies at once."""
WITHIN = 60.0
"""Seconds for anything that is waited for."""
SCRIPT = 'echo "$MUSTER_JOB_ID $MUSTER_ATTEMPT $MUSTER_RANK $$" >"$HERE"; exec sleep 3600'
"""Ends by SIGTERM at once. One write to the pipe, so that workers do not mix their words."""
CHILD = "sleep 3600 & "
"""In front of it: a child that outlives a worker that is killed, and holds its output, as data loaders do."""
BARS = {"others stopped": 0.3, "new attempt": 1.5, "in control": 2.0}
"""In seconds."""

Row = dict[str, object]


async def main(options: argparse.Namespace) -> list[Row]:
    """Measure everything; one row for each figure."""
    rows: list[Row] = []
    sizes = [int(size) for size in options.sizes.split(",") if size]
    async with fleet() as it:
        for size in sizes:
            rows += await worker_deaths(it, f"worker of {size} killed", (size, SCRIPT), options.repeats)
        for size in sizes[:1]:
            case = f"worker of {size} with a child killed"
            rows += await worker_deaths(it, case, (size, CHILD + SCRIPT), options.repeats)
        if options.gangs:
            rows += await coordinator_deaths(it, options)
    return rows


async def worker_deaths(it: "Fleet", case: str, workers: tuple[int, str], repeats: int) -> list[Row]:
    """Kill a worker again and again, each time of another gang; the first time is to warm up."""
    found: dict[str, list[float]] = defaultdict(list)
    async with it.client() as client:
        for turn in range(repeats + 1):
            say(f"{case}: {turn} of {repeats}")
            stopped, restarted = await worker_death(client, it.workers, *workers)
            if turn:
                found["others stopped"].append(stopped)
                found["new attempt"].append(restarted)
    return [row(case, figure, values) for figure, values in found.items()]


async def worker_death(client: Client, workers: "Workers", size: int, script: str) -> tuple[float, float]:
    """Seconds from the end of a worker to that of the others, and to the new attempt."""
    job = await client.submit(gang("mortal", size, script, restarts=1))
    pids = [worker.pid for worker in await workers.of(job.id, 1, size)]
    with all_ends(pids) as ends:
        victim = random.randrange(size)  # noqa: S311 - a choice, not a secret
        os.kill(pids[victim], signal.SIGKILL)
        died, *others = [await ends[victim], *[await end for end in ends]]
    again = await workers.of(job.id, 2, size)
    await client.delete(job.id, force=True)
    await until_gone(worker.pid for worker in again)
    return max(others) - died, max(worker.began for worker in again) - died


async def coordinator_deaths(it: "Fleet", options: argparse.Namespace) -> list[Row]:
    """Kill the coordinator again and again while the same gangs run."""
    async with it.client() as client:
        gangs = [await new_gang(client, it.workers) for _ in progress("gangs started", options.gangs)]
    rows = []
    for down in (float(seconds) for seconds in options.down.split(",")):
        found: dict[str, list[float]] = defaultdict(list)
        for _ in progress(f"coordinator killed, {down:g} s away", options.repeats):
            for figure, value in (await coordinator_death(it, gangs, down)).items():
                found[figure].append(value)
            async with it.client() as client:
                gangs.append(await new_gang(client, it.workers))
            await asyncio.sleep(STEADY)
        case = f"coordinator killed with {options.gangs} gangs, {down:g} s away"
        rows += [row(case, figure, values) for figure, values in found.items()]
    return rows


async def coordinator_death(it: "Fleet", gangs: "list[Gang]", down: float) -> Mapping[str, float]:
    """Seconds from the start of a new coordinator to each thing that it can do again; stops the first of the gangs."""
    it.coordinator.kill()
    it.coordinator.wait()
    it.ready.unlink()
    await asyncio.sleep(down)
    begun = time.perf_counter()
    it.start_coordinator()
    await it.serves()
    async with it.client() as client, asyncio.TaskGroup() as tasks:
        await client.nodes()
        answered = time.perf_counter()
        done = {
            "nodes connected, all adopted": tasks.create_task(adopted(client, len(gangs)), name="adopted"),
            "new job runs": tasks.create_task(placed(client, it.workers), name="placed"),
            "gang stopped": tasks.create_task(stopped(client, gangs.pop(0)), name="stopped"),
        }
    assert it.workers.all_run(gangs), "a gang did not outlive the coordinator"
    found = {"answers": answered - begun, **{figure: task.result() - begun for figure, task in done.items()}}
    return {**found, "in control": max(found.values())}


async def adopted(client: Client, gangs: int) -> float:
    """When all nodes were connected and all gangs (but one that is being stopped) counted as running."""
    while sum(node.state is NodeState.READY for node in await client.nodes()) < NODES:
        await asyncio.sleep(0.02)
    running = [job async for job in client.jobs(phases=[JobPhase.RUNNING], name_contains="lasting")]
    assert len(running) >= gangs - 1, f"only {len(running)} of {gangs} gangs run"
    return time.perf_counter()


async def placed(client: Client, workers: "Workers") -> float:
    """When a job ran that was submitted just now."""
    job = await client.submit(gang("fresh", 1), queue_anyway=True)
    (worker,) = await workers.of(job.id, 1, 1)
    await client.delete(job.id, force=True)
    return worker.began


async def stopped(client: Client, it: "Gang") -> float:
    """When nothing ran any more of a gang that was stopped just now."""
    with all_ends([worker.pid for worker in it.workers]) as ends:
        await client.stop(it.job)
        last = max([await end for end in ends])
    assert (await client.wait(it.job)).phase is JobPhase.STOPPED
    await client.delete(it.job)
    return last


def gang(name: str, size: int, script: str = SCRIPT, *, restarts: int = 0) -> JobSpec:
    """Workers on all nodes, as small as possible."""
    role = Role(
        count=size,
        command=("/bin/sh", "-c", script),
        env={"HERE": str(Workers.pipe)},
        resources=Resources(cpu_millis=10),
    )
    return JobSpec(name=name, packing=Packing.SPREAD, roles=(role,), restarts=RestartPolicy(limit=restarts))


@dataclass(frozen=True, slots=True)
class Worker:
    """One process of user code."""

    pid: int
    began: float
    """When its first words came."""


@dataclass(frozen=True, slots=True)
class Gang:
    """One that outlives coordinators."""

    job: str
    workers: Sequence[Worker]


async def new_gang(client: Client, workers: "Workers") -> Gang:
    """One that runs."""
    job = await client.submit(gang("lasting", GANG))
    return Gang(job.id, await workers.of(job.id, 1, GANG))


class Workers:
    """Hears of every worker that starts."""

    pipe: Path

    def __init__(self, directory: Path) -> None:
        Workers.pipe = directory / "workers"
        os.mkfifo(self.pipe)
        self._pipe = os.open(self.pipe, os.O_RDWR | os.O_NONBLOCK)
        self._found: dict[tuple[str, int], dict[int, Worker]] = defaultdict(dict)
        self._came = asyncio.Event()
        asyncio.get_running_loop().add_reader(self._pipe, self._hear)

    def close(self) -> None:
        """Listen no more."""
        asyncio.get_running_loop().remove_reader(self._pipe)
        os.close(self._pipe)

    async def of(self, job: str, attempt: int, size: int) -> Sequence[Worker]:
        """All workers of an attempt, once they run."""
        async with asyncio.timeout(WITHIN):
            while len(self._found[job, attempt]) < size:
                self._came.clear()
                await self._came.wait()
        return list(self._found[job, attempt].values())

    def all_run(self, gangs: Sequence[Gang]) -> bool:
        """Whether these gangs run as they were started, and were not started a second time."""
        pids = [worker.pid for each in gangs for worker in each.workers]
        again = [each for each in gangs if (each.job, 2) in self._found]
        return not again and all(Path(f"/proc/{pid}").exists() for pid in pids)

    def _hear(self) -> None:
        began = time.perf_counter()
        for line in os.read(self._pipe, 1 << 16).decode().splitlines():
            job, attempt, rank, pid = line.split()
            self._found[job, int(attempt)][int(rank)] = Worker(int(pid), began)
        self._came.set()


@contextmanager
def all_ends(pids: Sequence[int]) -> Iterator[Sequence["asyncio.Future[float]"]]:
    """When each of some processes that run now has ended."""
    loop = asyncio.get_running_loop()
    descriptors = {os.pidfd_open(pid): loop.create_future() for pid in pids}

    def ended(descriptor: int) -> None:
        loop.remove_reader(descriptor)
        descriptors[descriptor].set_result(time.perf_counter())

    for descriptor in descriptors:
        loop.add_reader(descriptor, ended, descriptor)
    try:
        yield list(descriptors.values())
    finally:
        for descriptor in descriptors:
            loop.remove_reader(descriptor)
            os.close(descriptor)


async def until_gone(pids: Iterator[int]) -> None:
    """Wait for the end of some processes that may have ended already."""
    for pid in pids:
        with suppress(ProcessLookupError), all_ends([pid]) as (end,):
            await asyncio.wait_for(end, WITHIN)


class Fleet:
    """A coordinator and agents in processes of their own."""

    def __init__(self, directory: Path, workers: Workers) -> None:
        self._directory = directory
        self._agents: list[subprocess.Popen[bytes]] = []
        self.coordinator: subprocess.Popen[bytes]
        self.workers = workers
        self.ready = directory / "address"
        self.address = "127.0.0.1:0"

    def start_coordinator(self) -> None:
        """At the address of the one before."""
        state = self._directory / "coordinator"
        self.coordinator = _program(
            "coordinator", "--local", "--state", state, "--listen", self.address, "--ready-file", self.ready
        )

    async def serves(self) -> None:
        """Wait until the coordinator can be asked."""
        async with asyncio.timeout(WITHIN):
            while not self.ready.exists():
                if self.coordinator.poll() is not None:
                    sys.exit("the coordinator ended")
                await asyncio.sleep(0.005)
        self.address = self.ready.read_text().strip()

    @property
    def _token(self) -> Path:
        return self._directory / "coordinator" / "local-token"

    @property
    def _shown(self) -> tuple[object, ...]:
        return "--token-file", self._token

    def client(self) -> Client:
        """A client that the coordinator knows."""
        return Client(self.address, Credentials(token=read_secret(self._token)))

    def start_agent(self, number: int) -> None:
        """One node."""
        first = PORTS[0] + number * PORTS[1]
        identity = ("--name", f"n{number}", "--address", f"127.0.0.{number + 2}", "--cpus", 64)
        place = ("--state", self._directory / f"n{number}", "--ports", f"{first}-{first + PORTS[1] - 1}")
        kind = ("--no-docker", "--processes", "--job-user", "none", "--stop-on-exit", "--gpu-provider", "fake:1xH100")
        self._agents.append(_program("agent", *self._shown, "--coordinator", self.address, *identity, *place, *kind))

    async def all_connected(self) -> None:
        """Wait until every node can be used."""
        async with asyncio.timeout(WITHIN), self.client() as client:
            while sum(node.state is NodeState.READY for node in await client.nodes()) < NODES:
                await asyncio.sleep(0.05)

    def end(self) -> None:
        """End everything, user code first."""
        for process in (*self._agents, self.coordinator):
            process.terminate()
        for process in (*self._agents, self.coordinator):
            try:
                process.wait(WITHIN)
            except subprocess.TimeoutExpired:
                process.kill()


@asynccontextmanager
async def fleet() -> AsyncIterator[Fleet]:
    """One that is connected, in a directory that is removed with it."""
    with tempfile.TemporaryDirectory(prefix="recovery-") as directory, closing(Workers(Path(directory))) as workers:
        it = Fleet(Path(directory), workers)
        it.start_coordinator()
        try:
            await it.serves()
            for number in range(NODES):
                it.start_agent(number)
            await it.all_connected()
            yield it
        finally:
            it.end()


def _program(module: str, *arguments: object) -> "subprocess.Popen[bytes]":
    """In a process group of its own, so that Ctrl-C reaches this program alone and everything ends in order."""
    command = [sys.executable, "-m", module, "--log-level", "error", *map(str, arguments)]
    return subprocess.Popen(command, process_group=0)


def row(case: str, figure: str, values: Sequence[float]) -> Row:
    """What is shown of several runs, in seconds."""
    median, bar = statistics.median(values), BARS.get(figure)
    spread = {"min": min(values), "median": median, "max": max(values)}
    met = None if bar is None else median < bar
    return {"case": case, "figure": figure, "runs": len(values), **spread, "bar": bar, "met": met}


def progress(what: str, count: int) -> Iterator[int]:
    """Numbers from 0, said aloud."""
    for number in range(count):
        say(f"{what}: {number} of {count}")
        yield number


def say(text: str) -> None:
    """How far it is; nothing of it stays on a terminal."""
    end = "\r" if sys.stderr.isatty() else "\n"
    print(f"{text:<70}", end=end, file=sys.stderr, flush=True)


def show(rows: Sequence[Row]) -> None:
    """As a table."""
    print(f"{'':>50}  {'':<30}  runs  seconds: min median   max  bar")
    for each in rows:
        times = f"{each['min']:12.3f} {each['median']:6.3f} {each['max']:6.3f}"
        bar = "" if each["bar"] is None else f"< {each['bar']} {'met' if each['met'] else 'MISSED'}"
        print(f"{each['case']:>50}  {each['figure']:<30}  {each['runs']:>4}  {times}  {bar}")


def parse() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="8,32", help="workers of a gang, one of which is killed (%(default)s)")
    parser.add_argument("--gangs", type=int, default=100, help="that run when the coordinator is killed (%(default)s)")
    parser.add_argument("--repeats", type=int, default=10, help="of each case (%(default)s)")
    parser.add_argument("--down", default="0.2,15", help="seconds without a coordinator, each in turn (%(default)s)")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON, with the load of the machine")
    return parser.parse_args()


if __name__ == "__main__":
    chosen, load = parse(), os.getloadavg()
    try:
        found = asyncio.run(main(chosen))
    except KeyboardInterrupt:
        sys.exit(130)
    except UnavailableError as error:
        sys.exit(f"recovery: {error}")
    if chosen.json:
        print(json.dumps({"load before": load[0], "load after": os.getloadavg()[0], "rows": found}, indent=2))
    else:
        show(found)
    sys.exit(any(each["met"] is False for each in found))
