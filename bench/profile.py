"""Where the CPU, the memory and the time go by which a bar is missed.

CPU is what the kernel counts for each thread (`/proc/PID/task/TID/schedstat`), so nothing is slowed down by looking.
"""

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from bench.fleet import GROUP, Fleet, fleet, gang
from bench.programs import finished
from bench.reaper import descendants
from bench.setting import Setting, Turns

SIZES = (8, 16, 32, 64)
WARM, COLD = "the same nodes every time", "other nodes every time"
LOOPS, GRPC, OTHERS, BESIDE = "event loop", "gRPC's own threads", "other threads", "programs beside the agents"
GRPC_NAMES = ("grpc", "event_engine", "timer", "default-exec", "resolver-exec", "iomgr")
"""How the names begin that gRPC's C core gives its threads; Python gives none, so its others cannot be told apart."""
PROGRAM_WITHIN = 30.0
WITHOUT_SSL = "import sys\nsys.modules['ssl'] = None\n"
"""Python's line that switches ssl off, as agents do (agent/__main__.py)."""
CHANNEL = """
async def use():
    ready = grpc.aio.secure_channel('127.0.0.1:1', grpc.ssl_channel_credentials()).channel_ready()
    await asyncio.wait([asyncio.ensure_future(ready)], timeout=0.2)
asyncio.run(use())"""
LAYERS: Mapping[str, str] = {
    "Python": "pass",
    "with asyncio": f"{WITHOUT_SSL}import asyncio",
    "with gRPC as well": f"{WITHOUT_SSL}import asyncio, grpc.aio",
    "with a channel as well": f"{WITHOUT_SSL}import asyncio, grpc.aio{CHANNEL}",
}
"""What every agent is made of before it has a line of Muster's own."""
SAY_RESIDENT = "\nprint(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmRSS')))"
STARTS: Mapping[str, str] = {
    "Python": "pass",
    "Python that imports gRPC": "import grpc",
    "Python that imports what `muster run` does": "from muster.cli.main import settle; settle()\n"
    "import muster.cli.program, muster.cli.commands.submit, muster.client.client, muster.cli.follow, muster.wire.jobs",
}


async def measure(setting: Setting) -> None:
    """Gangs by thread, an agent's memory by layer, a command's start by import."""
    sizes = [size for size in SIZES if size <= setting.largest]
    async with fleet(setting.scratch, max(sizes)) as muster:
        for size in sizes:
            await setting.quiet(f"CPU of a gang of {size} by thread")
            await _threads(setting, muster, size)
        await setting.quiet("gangs on nodes that have just run one, and on others")
        await _warmth(setting, muster, max(sizes) // GROUP)
    await setting.quiet("memory of a Python program with gRPC; how long commands take to start")
    await _layers(setting)
    await _starts(setting)


async def _threads(setting: Setting, muster: Fleet, size: int) -> None:
    """CPU for each execution, and how often a thread had to be woken."""
    turns = Turns(setting.repeats(9, 3))
    for _ in turns:
        before = _Used.by(muster)
        await _run(muster, size)
        used = _Used.by(muster) - before
        turns.keep({f"{kind}: CPU for each execution": spent / 1e6 / size for kind, spent in used.cpu.items()})
        turns.keep({f"{kind}: wake-ups for each execution": number / size for kind, number in used.woken.items()})
    for name, values in sorted(turns.found.items()):
        setting.findings.take(f"profile of {size}: {name}", values, "ms" if "CPU" in name else "")


async def _warmth(setting: Setting, muster: Fleet, groups: int) -> None:
    """The same work with what it needs in the CPUs' caches, and without."""
    turns = setting.repeats(3, 1) * groups
    for way, group_of in ((WARM, lambda _: 0), (COLD, lambda turn: turn % groups)):
        spent = []
        for turn in range(-1, turns):
            before = muster.used()[1]
            await _run(muster, GROUP, str(group_of(turn)))
            if turn >= 0:
                spent.append((muster.used()[1] - before) * 1000 / GROUP)
        setting.findings.take(f"profile of {GROUP}, {way}: CPU of one agent", spent, "ms")


async def _run(muster: Fleet, size: int, group: str | None = None) -> None:
    spec = gang(size, "/bin/true")
    job = await muster.client.jobs.submit(spec if group is None else replace(spec, node_labels={"local/group": group}))
    await muster.ended(job.id)
    await muster.settled(job.id)


class _Used:
    """Nanoseconds of CPU and wake-ups, by kind of thread."""

    def __init__(self, cpu: Counter[str], woken: Counter[str]) -> None:
        self.cpu, self.woken = cpu, woken

    @classmethod
    def by(cls, muster: Fleet) -> "_Used":
        """All that coordinator and agents have used since they were started."""
        it = cls(Counter(), Counter())
        it._add("coordinator, ", [muster.coordinator])
        it._add("agents, ", muster.agents)
        for agent in muster.agents:
            it._add(BESIDE, descendants(agent), whole=True)
        return it

    def __sub__(self, before: "_Used") -> "_Used":
        self.cpu.subtract(before.cpu)
        self.woken.subtract(before.woken)
        return self

    def _add(self, whose: str, pids: Iterable[int], *, whole: bool = False) -> None:
        for pid in pids:
            for thread, name in _thread_names(pid):
                kind = whose if whole else whose + _kind(pid, thread, name)
                with suppress(OSError):
                    self.cpu[kind] += int((thread / "schedstat").read_text().split()[0])
                    self.woken[kind] += _wake_ups(thread)


def _thread_names(pid: int) -> Iterator[tuple[Path, str]]:
    """Names of threads that have not ended meanwhile."""
    with suppress(OSError):
        for thread in list(Path(f"/proc/{pid}/task").iterdir()):
            with suppress(OSError):
                yield thread, (thread / "comm").read_text().strip()


def _kind(pid: int, thread: Path, name: str) -> str:
    if thread.name == str(pid):
        return LOOPS
    return GRPC if name.startswith(GRPC_NAMES) else OTHERS


def _wake_ups(thread: Path) -> int:
    """How often it gave up the CPU because it had nothing to do."""
    for line in (thread / "status").read_text().splitlines():
        if line.startswith("voluntary_ctxt_switches"):
            return int(line.split()[1])
    return 0


async def _layers(setting: Setting) -> None:
    for name, code in LAYERS.items():
        said = [await _python(code + SAY_RESIDENT) for _ in range(setting.repeats(5, 2))]
        setting.findings.take(f"profile of memory: {name}", [int(kib) * 1024 / 1e6 for kib in said], "MB")


async def _starts(setting: Setting) -> None:
    """Start them in turn, so that they share what the machine is like."""
    times: dict[str, list[float]] = {name: [] for name in STARTS}
    for _ in range(setting.repeats(15, 5)):
        for name, code in STARTS.items():
            began = time.perf_counter()
            # The end is not counted: commands leave without taking the interpreter down.
            await _python(f"{code}\nimport os\nos._exit(0)")
            times[name].append((time.perf_counter() - began) * 1000)
    for name, values in times.items():
        setting.findings.take(f"profile of a start: {name}", values, "ms")


async def _python(code: str) -> str:
    return await finished([sys.executable, "-c", code], PROGRAM_WITHIN)
