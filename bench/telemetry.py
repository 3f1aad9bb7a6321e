"""The cost of points of a log with a million of them, and of samples that ride on the heartbeats of many nodes."""

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

from bench.core_fleet import timed
from bench.crowd import HEARTBEAT
from bench.figures import Bar
from bench.fleet import Fleet, coordinator
from bench.programs import ProgramError, cpu_seconds
from bench.scale import crowd, many_files
from bench.setting import Setting
from coordinator.store.logs.logs import LogStore
from coordinator.store.logs.points import LogPoints, PointChoice
from muster.domain.gangs.log import LogRecord, Stream, format_record
from muster.domain.ids import ExecutionId
from muster.domain.telemetry.point import POINTS

MANY = 1_000_000
AT_ONCE = 5_000
"""Lines of one chunk of a log."""
MEMBER = ExecutionId("j7k2-1-0")
AT = 1_800_000_000_000_000_000

HEARTBEATS_LIMIT = 1.1
"""How many times as much heartbeats with samples may cost the coordinator as those without."""
ASKED_BAR = Bar(figure=f"{POINTS:,} of {MANY:,} points of a log", limit=50, unit="ms")
KEY_BAR = Bar(figure=f"{POINTS:,} of {MANY:,} points of a log, by key", limit=500, unit="ms")
FIRST_BAR = Bar(figure=f"{MANY:,} points of a log looked for the first time", limit=2_000, unit="ms")


async def measure(setting: Setting) -> None:
    """One log, asked again and again; then heartbeats."""
    await _points(setting)
    for nodes in setting.fleets:
        await _heartbeats(setting, nodes)


async def _heartbeats(setting: Setting, nodes: int) -> None:
    """Heartbeats without samples, with them, and with somebody who follows them, in turn."""
    many_files()
    figure = f"{nodes} nodes' heartbeats {{}}: coordinator CPU, share of one core"
    found: dict[str, list[float]] = {"without samples": [], "with samples": [], "with samples that are followed": []}
    async with (
        coordinator(setting.scratch.fresh("telemetry")) as muster,
        crowd(setting.scratch.path, muster, nodes) as agents,
    ):
        await agents.order("connect")
        await asyncio.sleep(5)
        await setting.quiet(f"heartbeats of {nodes} nodes, with samples and without")
        for _ in range(setting.repeats(3, 2)):
            await agents.order("bare")
            found["without samples"].append(await _share(muster))
            await agents.order("samples")
            found["with samples"].append(await _share(muster))
            following = asyncio.create_task(_follow(muster))
            found["with samples that are followed"].append(await _share(muster))
            following.cancel()
            await asyncio.wait([following])
    for name, shares in found.items():
        setting.findings.take(figure.format(name), shares, "")
    least = {name: min(shares) for name, shares in found.items()}
    for name in ("with samples", "with samples that are followed"):
        bar = Bar(figure=f"heartbeats of {nodes:,} nodes {name} / without", limit=HEARTBEATS_LIMIT)
        setting.findings.judge(bar, least[name] / least["without samples"], figure.format(name))


async def _share(muster: Fleet) -> float:
    """What part of a core the coordinator takes for two heartbeats of each node."""
    before, began = cpu_seconds(muster.coordinator), time.perf_counter()
    await asyncio.sleep(2 * HEARTBEAT)
    return (cpu_seconds(muster.coordinator) - before) / (time.perf_counter() - began)


async def _follow(muster: Fleet) -> None:
    async with aclosing(muster.client.telemetry.follow_nodes()) as batches:
        async for _ in batches:
            pass


async def _points(setting: Setting) -> None:
    await setting.quiet(f"telemetry: a log with {MANY:,} points")
    with tempfile.TemporaryDirectory(dir=setting.scratch.path) as directory:
        logs = LogStore(Path(directory))
        for chunk in _chunks():
            logs.append(MEMBER, logs.size(MEMBER), chunk)
        reader, every, by_key = LogPoints(logs), PointChoice(), PointChoice(keys=frozenset({"loss"}))

        def ask(choice: PointChoice) -> None:
            batch = reader.read(MEMBER, choice)
            if (len(batch.points), batch.all) != (POINTS, MANY):
                raise ProgramError(f"{len(batch.points)} points of {batch.all}")

        def first() -> None:
            logs.points_file(MEMBER).unlink(missing_ok=True)
            ask(every)

        found = {
            FIRST_BAR: timed(setting.repeats(5, 3), first, warm=0),
            ASKED_BAR: timed(setting.repeats(30, 10), lambda: ask(every)),
            KEY_BAR: timed(setting.repeats(10, 5), lambda: ask(by_key)),
        }
        logs.close()
    for bar, values in found.items():
        setting.findings.take(bar.figure, values, "ms")
        setting.findings.absolute(bar, bar.figure)


def _chunks() -> Iterator[bytes]:
    for start in range(0, MANY, AT_ONCE):
        yield b"".join(
            format_record(LogRecord(time_ns=AT + step * 1000, stream=Stream.STDOUT, text=_text(step)))
            for step in range(start, start + AT_ONCE)
        )


def _text(step: int) -> bytes:
    return json.dumps({"step": step, "loss": 1 / (step + 1), "lr": 0.1}).encode()
