"""From launch to torch's first gloo barrier: Muster beside plain processes with env:// and beside torchrun.

Importing torch takes a second of CPU for each rank, and varies by more than all that is compared here. So Muster and
plain processes run one after the other, in turns as to who is first, with the same environment; what Muster adds is the
mean of their differences. How much of it comes before the first line of the last rank is said apart.
"""

import asyncio
import os
import random
import socket
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from bench.figures import Bar
from bench.fleet import Fleet, fleet, gang
from bench.programs import ProgramError, ended_at_exit, start
from bench.scratch import PROGRAMS
from bench.setting import Setting, Turns

SIZES = {2: 81, 4: 71}
"""Ranks → turns. A rank that comes before rank 0 listens tries again after a while that torch draws by lot, up to a
second. After so many turns the standard error of the mean difference is about 0.04 s; that of the median, which lies in
the gap between who had to try again and who had not, would be twice as much."""
LIMIT = 0.1
DONE_WITHIN = 120.0
WORKER = PROGRAMS / "gloo_barrier.py"
GLOO = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", "PATH": os.environ["PATH"]}
"""All that a rank finds in its environment, beside how to meet the others."""
TORCHRUN_EVERY = 7
"""Turns between two of its measurements; it takes so much longer that fewer repeats say enough."""
FIRST_LINE = ", first line of the last rank"


async def measure(setting: Setting) -> None:
    """The ways in turn."""
    if not setting.has("torch"):
        return
    async with fleet(setting.scratch, max(SIZES)) as muster:
        for size, count in SIZES.items():
            await setting.quiet(f"gloo barrier of {size}: plain env://, Muster, torchrun")
            await _compare(setting, Ranks(setting, muster, size), count)


async def _compare(setting: Setting, ranks: "Ranks", count: int) -> None:
    turns = Turns(setting.repeats(count, 7))
    pair: list[Callable[[], Awaitable[Mapping[str, float]]]] = [ranks.plain, ranks.muster]
    for turn in turns:
        ways = pair if turn % 2 else pair[::-1]
        for way in ways if turn % TORCHRUN_EVERY else [*ways, ranks.torchrun]:
            turns.keep(await way())
    findings, size = setting.findings, ranks.size
    for name, values in turns.found.items():
        findings.take(f"gloo barrier {size}: {name}", values, "s")
    for part, limit, figure in (
        ("", LIMIT, "launch → gloo barrier"),
        (FIRST_LINE, None, "launch → first line of the last rank"),
    ):
        bar = Bar(figure=f"{figure}, {size} ranks, over plain env://", limit=limit, unit="s")
        ours, theirs = f"gloo barrier {size}: Muster{part}", f"gloo barrier {size}: plain env://{part}"
        findings.excess(bar, ours, theirs, statistics.fmean)
    over = Bar(figure=f"launch → gloo barrier, {size} ranks: Muster / torchrun")
    findings.ratio(over, f"gloo barrier {size}: Muster", f"gloo barrier {size}: torchrun")


class Ranks:
    """So many ranks, started in three ways."""

    def __init__(self, setting: Setting, muster: Fleet, size: int) -> None:
        self.size = size
        self._muster = muster
        self._python = setting.scratch.python
        self._directory = setting.scratch.fresh("gloo")
        self._count = 0

    async def plain(self) -> Mapping[str, float]:
        """Each is told by hand where rank 0 is, which nothing can be faster than."""
        file, port = self._file(), str(_free_port())
        async with ended_at_exit() as programs:
            began = time.time_ns()
            for rank in self._in_any_order():
                where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": rank, "WORLD_SIZE": self.size}
                programs.append(start([*_only(where), self._python, WORKER, file], file.with_suffix(".log")))
            return _times("plain env://", await self._written(file), began)

    async def torchrun(self) -> Mapping[str, float]:
        """An agent of torch's own for each node, which meet at one of them."""
        file = self._file()
        rendezvous = ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{_free_port()}", "--rdzv-id=bench"]
        run = [self._python, "-m", "torch.distributed.run", f"--nnodes={self.size}", "--nproc-per-node=1", *rendezvous]
        async with ended_at_exit() as programs:
            began = time.time_ns()
            for _ in range(self.size):
                programs.append(start([*_only({}), *run, WORKER, file], file.with_suffix(".log")))
            return _times("torchrun", await self._written(file), began)

    async def muster(self) -> Mapping[str, float]:
        """A job through a client that is connected."""
        file, began = self._file(), time.time_ns()
        job = await self._muster.client.jobs.submit(gang(self.size, self._python, WORKER, file, env=GLOO))
        times = _times("Muster", await self._written(file), began)
        await self._muster.ended(job.id)
        await self._muster.settled(job.id)
        return times

    def _in_any_order(self) -> list[int]:
        """The ranks in any order: on one machine whoever is started first tends to be ready first, and few would
        wait.
        """
        return random.Random(self._count).sample(range(self.size), self.size)  # noqa: S311 - an order, not a secret

    def _file(self) -> Path:
        self._count += 1
        return self._directory / str(self._count)

    async def _written(self, file: Path) -> list[tuple[int, int]]:
        """What the ranks wrote, once all are through their barrier."""
        written: list[tuple[int, int]] = []
        try:
            async with asyncio.timeout(DONE_WITHIN):
                while len(written) < self.size:
                    await asyncio.sleep(0.05)
                    written = await asyncio.to_thread(_lines, file)
        except TimeoutError:
            said = f"{len(written)} of {self.size} ranks were through the barrier; see {file}.log"
            raise ProgramError(said) from None
        return written


def _only(more: Mapping[str, object]) -> list[str]:
    """Words in front of a command: it finds this in its environment, and nothing of ours."""
    return ["env", "-i", *(f"{name}={value}" for name, value in {**GLOO, **more}.items())]


def _times(way: str, written: list[tuple[int, int]], began: int) -> Mapping[str, float]:
    """Seconds until the last rank was through its barrier, and until the last one ran."""
    runs, through = (max(times) for times in zip(*written, strict=True))
    return {way: (through - began) / 1e9, f"{way}{FIRST_LINE}": (runs - began) / 1e9}


def _lines(file: Path) -> list[tuple[int, int]]:
    if not file.exists():
        return []
    whole = file.read_text().rpartition("\n")[0].splitlines()
    return [(int(began), int(through)) for began, through in (line.split() for line in whole)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
