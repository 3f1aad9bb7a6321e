"""Deaths of workers and of the coordinator: what bench/recovery.py measures, as a part of the whole."""

import json
import sys
from pathlib import Path

from bench.figures import Bar
from bench.programs import finished
from bench.setting import Setting

PROGRAM = Path(__file__).with_name("recovery.py")
WITHIN = 1200.0


async def measure(setting: Setting) -> None:
    """One worker dies; the coordinator dies."""
    if not PROGRAM.exists():
        setting.findings.remark(f"recovery was not measured: there is no {PROGRAM.name}")
        return
    await setting.quiet("a worker dies; the coordinator dies")
    size = ["--gangs", str(setting.repeats(100, 20)), "--repeats", str(setting.repeats(10, 2)), "--down", "0.2"]
    # Its exit status says whether the bars were met, and so does its answer.
    said = await finished(["sh", "-c", '"$@" || test $? = 1', "sh", sys.executable, PROGRAM, *size, "--json"], WITHIN)
    for row in json.loads(said)["rows"]:
        name = f"recovery: {row['case']}: {row['figure']}"
        setting.findings.take(name, [row["min"], row["median"], row["max"]], "s")
        if row["bar"] is not None:
            bar = Bar(figure=f"{row['case']}: {row['figure']}", limit=row["bar"], unit="s")
            setting.findings.judge(bar, row["median"], name)
