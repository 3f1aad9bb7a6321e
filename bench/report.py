"""docs/performance.md: the part between its markers is written from what was measured."""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.figures import Bar, number
from bench.programs import run
from bench.scratch import PROGRAMS, PeerMissingError, Scratch

DOCS = Path(__file__).parent.parent / "docs"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
DRAW_WITHIN = 120.0
QUIET = 0.1
"""Above this share of the CPUs in use by others, a figure carries a mark."""


def write_docs(scratch: Scratch, results: Path) -> None:
    """The table, the series and the charts; other text of the page stays."""
    page = DOCS / "performance.md"
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    measured = "\n".join(_measured(json.loads(results.read_text(encoding="utf-8"))))
    page.write_text(f"{before}{BEGIN}\n\n{measured}\n\n{END}{after}", encoding="utf-8")
    (DOCS / "performance.json").write_text(results.read_text(encoding="utf-8"), encoding="utf-8")
    try:
        scratch.need("charts")
    except PeerMissingError as error:
        print(f"no charts: {error}")
        return
    run([scratch.python, PROGRAMS / "draw_charts.py", results, DOCS / "performance"], DRAW_WITHIN)


def _measured(found: dict[str, Any]) -> Iterator[str]:
    machine = ", ".join(f"{key} {value}" for key, value in found["machine"].items() if key not in {"at", "load"})
    yield f"On {machine}; the last of it at {found['machine']['at']}.\n"
    yield "| figure | bar | measured | | others used | reproduce with |"
    yield "|---|---|---|---|---|---|"
    series = found["series"]
    for verdict in found["verdicts"].values():
        bar = Bar(**verdict["bar"])
        sources = [part.strip() for part in verdict["of"].replace(" - ", " / ").split(" / ")]
        busy = max((series[name]["busy"] for name in sources if name in series), default=verdict.get("busy", 1.0))
        met = ("met" if verdict["met"] else "**missed**") + (", not quiet" if busy > QUIET else "")
        value = number(verdict["value"])
        if not math.isinf(verdict["value"]):
            value = f"{value} {bar.unit}".rstrip()
        yield f"| {bar.figure} | {bar.shown()} | {value} | {met} | {busy:.0%} | `{_command(verdict)}` |"
    yield "\nAll series (median, range, number):\n"
    yield "| series | median | range | n | others used |"
    yield "|---|--:|---|--:|--:|"
    for name, each in series.items():
        values = each["values"]
        span = f"{number(min(values))} … {number(max(values))}"
        median = f"{number(each['median'])} {each['unit']}".rstrip()
        yield f"| {name} | {median} | {span} | {len(values)} | {each['busy']:.0%} |"


def _command(verdict: dict[str, Any]) -> str:
    return f"make bench ONLY={verdict['section']}"
