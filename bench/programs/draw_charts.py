"""Draws the charts of docs/performance.md, in the environment of the peers: `draw_charts.py RESULTS DIRECTORY`.

Both scales of every chart are logarithmic. Where a line has a slope, the legend has it: what costs the same at any size
has 0, what is proportional to the size has 1.
"""

import json
import re
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "muster"
from matplotlib import pyplot as plt  # noqa: E402 - the backend is chosen first

GANGS = {
    "Muster, API, all addresses": r"gang (\d+): API all addresses",
    "srun + PMI2, all addresses": r"gang (\d+): srun\+PMI2 all addresses",
    "srun, started only": r"gang (\d+): srun started",
    "muster run, whole command": r"gang (\d+): CLI whole command",
    "srun, whole command": r"gang (\d+): srun whole command",
}
FLEETS = {
    "reconnect storm": r"(\d+) nodes: reconnect storm",
    "a gang of all nodes, submit → all running": r"gang of (\d+): submit → all running",
    "of that, release barrier": r"gang of (\d+): released → all running \(release barrier\)",
}
LEAST_FOR_SLOPE = 3


def main(results: Path, directory: Path) -> None:
    """One chart for gangs, one for fleets, one for each axis of the core."""
    medians = {name: each["median"] for name, each in json.loads(results.read_text())["series"].items()}
    directory.mkdir(parents=True, exist_ok=True)
    draw(lines(medians, GANGS), ("executions", "ms, median"), directory / "gangs.svg")
    draw(lines(medians, FLEETS), ("nodes", "s, median"), directory / "fleets.svg")
    for axis, file in (("nodes", "cost-nodes.svg"), ("queued jobs", "cost-queue.svg")):
        matches = (re.fullmatch(rf"event, \d+ {axis}: (.*)", name) for name in medians)
        events = sorted({match[1] for match in matches if match})
        patterns = {event: rf"event, (\d+) {axis}: {re.escape(event)}" for event in events}
        draw(lines(medians, patterns), (axis, "ms for one event, median"), directory / file)


def lines(medians: dict[str, float], patterns: dict[str, str]) -> dict[str, list[tuple[int, float]]]:
    """Size and median, by size, for each pattern that was measured."""
    found = {}
    for label, pattern in patterns.items():
        matches = ((re.fullmatch(pattern, name), value) for name, value in medians.items())
        values = sorted((int(match[1]), value) for match, value in matches if match and value > 0)
        if values:
            found[f"{label}{slope(values)}"] = values
    return found


def slope(values: list[tuple[int, float]]) -> str:
    """The slope of the straight line through the points on logarithmic scales."""
    if len(values) < LEAST_FOR_SLOPE:
        return ""
    sizes, medians = np.log(np.array(values)).T
    return f" (slope {np.polyfit(sizes, medians, 1)[0]:.2f})"


def draw(found: dict[str, list[tuple[int, float]]], axes: tuple[str, str], file: Path) -> None:
    """Nothing is drawn where nothing was measured."""
    if not found:
        return
    figure, plot = plt.subplots(figsize=(7, 4.2))
    for label, values in found.items():
        plot.loglog(*zip(*values, strict=True), marker="o", label=label)
    plot.set_xlabel(axes[0])
    plot.set_ylabel(axes[1])
    plot.grid(visible=True, which="both", alpha=0.3)
    plot.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


main(Path(sys.argv[1]), Path(sys.argv[2]))
