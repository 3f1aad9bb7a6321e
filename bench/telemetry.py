"""The cost of asking for points of a log with a million of them: at first, and once they were looked for."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.core_fleet import timed
from bench.figures import Bar
from bench.programs import ProgramError
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

ASKED_BAR = Bar(figure=f"{POINTS:,} of {MANY:,} points of a log", limit=50, unit="ms")
KEY_BAR = Bar(figure=f"{POINTS:,} of {MANY:,} points of a log, by key", limit=500, unit="ms")
FIRST_BAR = Bar(figure=f"{MANY:,} points of a log looked for the first time", limit=2_000, unit="ms")


async def measure(setting: Setting) -> None:
    """One log, asked again and again."""
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
