"""From submit to the last worker that runs and holds all addresses: Muster beside srun, alone and with PMI2.

Everything is stamped by the workers themselves at their first instruction and once they hold every address. Slurm and
Muster take turns. `srun` alone tells its workers nothing of each other; with PMI2 they put, fence and get all
addresses, which is the job that the roster does.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from bench.figures import Bar
from bench.fleet import Fleet, fleet, gang
from bench.programs import ProgramError, finished
from bench.setting import Setting, Turns, stamps
from bench.slurm import Slurm, slurm
from muster.domain.jobs.view import JobView

SIZES = (1, 8, 16, 32, 64)
COMMAND_WITHIN = 120.0
REPEATS = 15
STARTED = "all started with all addresses, {} executions, API: Muster"
THROUGH_CLI = "through the CLI, {} executions: Muster / plain srun (whole command)"
COMPARED = (
    (f"{STARTED} / (srun + PMI2)", {8: 0.6, 16: 0.6, 32: 0.4}, "API all addresses", "srun+PMI2 all addresses"),
    (f"{STARTED} / plain srun", {64: 0.6}, "API all addresses", "srun started"),
    (THROUGH_CLI, {16: 1.0, 32: 1.0, 64: 1.0}, "CLI whole command", "srun whole command"),
)
"""The figure, its bars by the number of executions, what of a gang is ours in it, and what is Slurm's."""
REST = 2.0
"""Seconds without anything to do. Slurm looks at its queue about once a second, or at once if it has not lately."""
AFTERWARDS, RESTED = "right after another job", "after two seconds of rest"
QUEUED = "queued submit → running, {}: Muster / tuned sbatch"
QUEUED_CLI = "queued, {}, both through their command lines: Muster / tuned sbatch"
QUEUED_LIMIT = 0.15


class Stamped:
    """Runs gangs of the stamping program, and reads what they wrote."""

    def __init__(self, setting: Setting, muster: Fleet, peer: Slurm | None) -> None:
        self._program = setting.scratch.program("stamp", "-static")
        self._pmi2 = None if peer is None else setting.scratch.program("stamp_pmi2", "-lpmi2")
        self._directory = setting.scratch.fresh("stamps")
        self._count = 0
        self._muster = muster
        self._peer = peer

    def _file(self) -> Path:
        self._count += 1
        return self._directory / str(self._count)

    async def api(self, size: int) -> Mapping[str, float]:
        """Through a client that is connected."""
        before = self._muster.used()
        file, began = self._file(), time.time_ns()
        job = await self._muster.client.jobs.submit(gang(size, self._program, file))
        accepted = time.time_ns()
        await self._muster.ended(job.id)
        phases = _phases(await self._muster.settled(job.id))
        coordinator, agents = (
            (after - earlier) * 1000 for after, earlier in zip(self._muster.used(), before, strict=True)
        )
        used = {"API: CPU of the coordinator": coordinator, "API: CPU of one agent": agents / size}
        return {"API accepted": (accepted - began) / 1e6, **_times("API", file, began, size), **phases, **used}

    async def command_line(self, size: int) -> Mapping[str, float]:
        """Through `muster run`, from its start to its end."""
        file = self._file()
        words, environment = self._muster.command_line()
        options = ["run", "-N", str(size), "--cpus", "0.1", "--placement", "spread", "--max-per-node", "1"]
        began = time.time_ns()
        await finished([*words, *options, "--", self._program, file], COMMAND_WITHIN, **environment)
        returned = (time.time_ns() - began) / 1e6
        newest = [job async for job in self._muster.client.jobs.list(limit=1)]
        await self._muster.settled(newest[0].id)
        return {"CLI whole command": returned, **_times("CLI", file, began, size)}

    async def submitted(self) -> Mapping[str, float]:
        """A job that a file describes, through `muster submit`, to its first instruction."""
        file, described = self._file(), self._directory / "job.yaml"
        described.write_text(f"name: bench\ncommand: [{self._program}, {file}]\nresources: {{cpus: 0.1}}\n")
        words, environment = self._muster.command_line()
        began = time.time_ns()
        job = (await finished([*words, "submit", described], COMMAND_WITHIN, **environment)).strip()
        await self._muster.ended(job)
        await self._muster.settled(job)
        return {"CLI started": _times("CLI", file, began, 1)["CLI started"]}

    async def srun(self, size: int) -> Mapping[str, float]:
        """The same program under srun, which tells it no addresses."""
        assert self._peer is not None
        file = self._file()
        began = await self._peer.srun(size, self._program, file)
        returned = (time.time_ns() - began) / 1e6
        times = _times("srun", file, began, size, informed=False)
        await self._peer.idle()
        return {"srun whole command": returned, "srun started": times["srun started"]}

    async def pmi2(self, size: int) -> Mapping[str, float]:
        """Under srun with PMI2."""
        assert self._peer is not None
        assert self._pmi2 is not None
        file = self._file()
        began = await self._peer.srun(size, "--mpi=pmi2", self._pmi2, file)
        times = _times("srun+PMI2", file, began, size)
        await self._peer.idle()
        return times

    async def sbatch(self) -> Mapping[str, float]:
        """A batch script, from `sbatch` to its first instruction."""
        assert self._peer is not None
        file, script = self._file(), self._directory / "script"
        script.write_text(f'#!/bin/sh\nexec {self._program} "$1"\n')
        began = await self._peer.sbatch(script, file)
        async with asyncio.timeout(COMMAND_WITHIN):
            while not stamps(file):
                await asyncio.sleep(0.01)
        await self._peer.idle()
        return {"sbatch started": _times("sbatch", file, began, 1, informed=False)["sbatch started"]}


def _times(way: str, file: Path, began: float, size: int, *, informed: bool = True) -> Mapping[str, float]:
    """Milliseconds until the last was started, and until the last held all addresses."""
    written = stamps(file)
    if len(written) != size or (informed and any(known != size for _, _, known in written)):
        raise ProgramError(f"{way}: {len(written)} of {size} workers wrote {written[:3]} …")
    started, informed_at = (max(stamp[field] for stamp in written) for field in (0, 1))
    return {f"{way} started": (started - began) / 1e6, f"{way} all addresses": (informed_at - began) / 1e6}


def _phases(job: JobView) -> Mapping[str, float]:
    """How long each phase took, by the coordinator's clock: for finding out what is slow."""
    attempt = job.attempts[-1]
    moments = {
        "placed": attempt.placed_at,
        "checked in": attempt.checked_in_at,
        "released": attempt.released_at,
        "reported running": attempt.started_at,
    }
    since, found = job.submitted_at, {}
    for name, at in moments.items():
        if at is not None:
            found[f"API phase: {name} after"] = (at - since).total_seconds() * 1000
            since = at
    return found


async def measure(setting: Setting) -> None:
    """Gangs of all sizes, then the queue."""
    sizes = [size for size in SIZES if size <= setting.largest]
    async with AsyncExitStack() as stack:
        peer = await stack.enter_async_context(slurm(setting.scratch, max(sizes))) if setting.has("slurm") else None
        muster = await stack.enter_async_context(fleet(setting.scratch, max(sizes)))
        stamped = Stamped(setting, muster, peer)
        for size in sizes:
            await setting.quiet(f"gangs of {size}: API, CLI" + (", srun, srun with PMI2" if peer else ""))
            await _gangs(setting, stamped, size, with_slurm=peer is not None)
        if peer is not None:
            await setting.quiet("queued: sbatch, API, `muster submit`")
            await _queued(setting, stamped)
    _judge(setting, sizes)


async def _gangs(setting: Setting, stamped: Stamped, size: int, *, with_slurm: bool) -> None:
    ways = [stamped.api, stamped.command_line]
    if with_slurm:
        ways = [stamped.api, stamped.pmi2, stamped.command_line, stamped.srun]
    turns = Turns(setting.repeats(REPEATS, 4))
    for turn in turns:
        # None always comes after the same one, whose traces it would find.
        for way in random.Random(turn).sample(ways, len(ways)):  # noqa: S311 - an order, not a secret
            turns.keep(await way(size))
    for name, values in sorted(turns.found.items()):
        setting.findings.take(f"gang {size}: {name}", values, "ms")


async def _queued(setting: Setting, stamped: Stamped) -> None:
    """A job that comes after a while in which there was none, and one that comes right after it."""
    turns = Turns(setting.repeats(REPEATS, 4))
    ways: dict[str, Callable[[], Awaitable[Mapping[str, float]]]] = {
        "sbatch started": stamped.sbatch,
        "API started": partial(stamped.api, 1),
        "CLI started": stamped.submitted,
    }
    for _ in turns:
        for name, way in ways.items():
            await asyncio.sleep(REST)
            for when in (RESTED, AFTERWARDS):
                turns.keep({f"queued, {when}: {name}": (await way())[name]})
    for name, values in turns.found.items():
        setting.findings.take(name, values, "ms")
    for when in (AFTERWARDS, RESTED):
        bar = Bar(figure=QUEUED.format(when), limit=QUEUED_LIMIT)
        theirs = f"queued, {when}: sbatch started"
        setting.findings.ratio(bar, f"queued, {when}: API started", theirs)
        setting.findings.ratio(Bar(figure=QUEUED_CLI.format(when)), f"queued, {when}: CLI started", theirs)


def _judge(setting: Setting, sizes: Sequence[int]) -> None:
    for figure, limits, ours, theirs in COMPARED:
        for size in sizes:
            bar = Bar(figure=figure.format(size), limit=limits.get(size))
            setting.findings.ratio(bar, f"gang {size}: {ours}", f"gang {size}: {theirs}")
