"""docs/performance.md: the part between its markers is written from what was measured, and so are its charts."""

import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.figures import Bar, number
from bench.programs import run
from bench.scratch import PROGRAMS, PeerMissingError, Scratch

DOCS = Path(__file__).parent.parent / "docs"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
DRAW_WITHIN = 120.0
QUIET = 0.05
"""Where others used more of the CPUs than this while it was taken, a figure carries a mark."""
GANGS: Mapping[str, str] = {
    "Muster, API: all addresses": "API all addresses",
    "srun + PMI2: all addresses": "srun+PMI2 all addresses",
    "plain srun: started": "srun started",
    "`muster run`: whole command": "CLI whole command",
    "`srun`: whole command": "srun whole command",
}
SIZES = (1, 8, 16, 32, 64)
SERIES_HEAD = """\
# All series

Written by `make bench WRITE_DOCS=1`; [performance.md](../performance.md) says what they mean, and
[performance.json](../performance.json) has every single value.

| series | median | range | n | others used |
|---|--:|---|--:|--:|
"""


def write_docs(scratch: Scratch, results: Path) -> None:
    """The tables, the series and the charts; other text of the page stays."""
    page, found = DOCS / "performance.md", json.loads(results.read_text(encoding="utf-8"))
    page.write_text(with_measured(page.read_text(encoding="utf-8"), found), encoding="utf-8")
    (DOCS / "performance.json").write_text(f"{json.dumps(found, ensure_ascii=False)}\n", encoding="utf-8")
    (DOCS / "performance").mkdir(exist_ok=True)
    (DOCS / "performance" / "series.md").write_text(series_page(found), encoding="utf-8")
    try:
        scratch.need("charts")
    except PeerMissingError as error:
        print(f"no charts: {error}")
        return
    run([scratch.python, PROGRAMS / "draw_charts.py", results, DOCS / "performance"], DRAW_WITHIN)


def with_measured(page: str, found: Mapping[str, Any]) -> str:
    """The page with what was found between its markers."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    measured = "\n".join(_measured(found))
    return f"{before}{BEGIN}\n\n{measured}\n\n{END}{after}"


def series_page(found: Mapping[str, Any]) -> str:
    """A page with all series."""
    rows = (_series(name, each) for name, each in found["series"].items())
    return SERIES_HEAD + "\n".join(rows) + "\n"


def _measured(found: Mapping[str, Any]) -> Iterator[str]:
    machines = _machines(found["parts"].values())
    yield from (f"Machine {number} is {machine}.\n" for machine, number in machines.items())
    yield "| figure | bar | measured | | others used | reproduce with |"
    yield "|---|---|---|---|--:|---|"
    verdicts = list(found["verdicts"].values())
    for verdict in verdicts:
        if verdict["met"] is not None:
            met = ("met" if verdict["met"] else "**missed**") + (", not quiet" if verdict["busy"] > QUIET else "")
            bar, busy, command = Bar(**verdict["bar"]), verdict["busy"], f"make bench ONLY={verdict['section']}"
            yield f"| {bar.figure} | {bar.shown()} | {verdict['shown']} | {met} | {busy:.0%} | `{command}` |"
    yield "\nOf what has no bar:\n"
    yield "| figure | measured | others used |"
    yield "|---|---|--:|"
    for verdict in verdicts:
        if verdict["met"] is None:
            yield f"| {verdict['bar']['figure']} | {verdict['shown']} | {verdict['busy']:.0%} |"
    yield from _gangs(found["series"])
    yield "\nHow long each part took; [all series](performance/series.md).\n"
    yield "| part | began | seconds | machine | counting to ten million | version | files on | remarks |"
    yield "|---|---|--:|--:|---|---|---|---|"
    for name, part in found["parts"].items():
        remarks = "; ".join((*(("quick",) if part["quick"] else ()), *part["remarks"]))
        remarks = " ".join(remarks.replace("|", "/").split())
        of = f"`{part['version']}` | {part.get('files', 'not noted')}"
        where = f"{machines[_machine(part)]} | {_pace(part.get('pace', ()))}"
        yield f"| {name} | {part['at']} | {part['took']:.0f} | {where} | {of} | {remarks} |"


def _machines(parts: Iterable[Mapping[str, Any]]) -> Mapping[str, int]:
    """The machines on which parts were measured, and the number of each, from 1."""
    return {machine: number for number, machine in enumerate(dict.fromkeys(map(_machine, parts)), 1)}


def _machine(part: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in part["machine"].items())


def _pace(values: Sequence[float]) -> str:
    """How fast the CPUs were."""
    if not values:
        return "not noted"
    return f"{number(statistics.median(values))} ms ({number(min(values))} … {number(max(values))})"


def _gangs(series: Mapping[str, Any]) -> Iterator[str]:
    """Medians side by side."""
    sizes = [size for size in SIZES if any(f"gang {size}: {way}" in series for way in GANGS.values())]
    if sizes:
        yield "\nGangs, medians in ms:\n"
        yield f"| executions | {' | '.join(map(str, sizes))} |"
        yield "|---|" + "--:|" * len(sizes)
        for label, way in GANGS.items():
            found = [series.get(f"gang {size}: {way}") for size in sizes]
            cells = (number(each["median"]) if each else "" for each in found)
            yield f"| {label} | {' | '.join(cells)} |"


def _series(name: str, each: Mapping[str, Any]) -> str:
    values = each["values"]
    median = f"{number(each['median'])} {each['unit']}".rstrip()
    span = f"{number(min(values))} … {number(max(values))}"
    return f"| {name} | {median} | {span} | {len(values)} | {each['busy']:.0%} |"
