"""Draws the charts of docs/performance.md, in the environment of the peers: `draw_charts.py RESULTS DIRECTORY`."""

import json
import re
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "muster"
from matplotlib import pyplot as plt  # noqa: E402 - the backend is chosen first

GANGS = {
    "API all addresses": "Muster, API, all addresses",
    "srun+PMI2 all addresses": "srun + PMI2, all addresses",
    "srun started": "srun, started only",
    "CLI whole command": "muster run, whole command",
    "srun whole command": "srun, whole command",
}


def main(results: Path, directory: Path) -> None:
    """One chart for gangs, one for each axis of the core."""
    medians = {name: each["median"] for name, each in json.loads(results.read_text())["series"].items()}
    directory.mkdir(parents=True, exist_ok=True)
    gangs = {label: points(medians, rf"gang (\d+): {re.escape(way)}") for way, label in GANGS.items()}
    draw(gangs, ("executions", "ms, median"), directory / "gangs.svg")
    for axis, file in (("nodes", "cost-nodes.svg"), ("queued jobs", "cost-queue.svg")):
        found = {}
        for name in medians:
            match = re.fullmatch(rf"event, \d+ {axis}: (.*)", name)
            if match:
                found[match[1]] = points(medians, rf"event, (\d+) {axis}: {re.escape(match[1])}")
        draw(found, (axis, "ms for one event, median"), directory / file)


def points(medians: dict[str, float], pattern: str) -> list[tuple[int, float]]:
    """Size and median, by size."""
    matches = ((re.fullmatch(pattern, name), value) for name, value in medians.items())
    return sorted((int(match[1]), value) for match, value in matches if match)


def draw(lines: dict[str, list[tuple[int, float]]], axes: tuple[str, str], file: Path) -> None:
    """Both scales are logarithmic; nothing is drawn where nothing was measured."""
    if not any(lines.values()):
        return
    figure, plot = plt.subplots(figsize=(7, 4.2))
    for label, values in lines.items():
        if values:
            plot.loglog(*zip(*values, strict=True), marker="o", label=label)
    plot.set_xlabel(axes[0])
    plot.set_ylabel(axes[1])
    plot.grid(visible=True, which="both", alpha=0.3)
    plot.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})
    plt.close(figure)


main(Path(sys.argv[1]), Path(sys.argv[2]))
