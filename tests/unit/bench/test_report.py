"""What docs/performance.md shows of the results."""

import json
from pathlib import Path
from typing import Any

from bench.figures import Bar, Findings, Part
from bench.report import BEGIN, END, with_measured

PAGE = f"# Performance\n\nBefore.\n\n{BEGIN}\n\nold\n\n{END}\n\nAfter.\n"


def results(tmp_path: Path, *, others: float = 0.0, remarks: tuple[str, ...] = ()) -> dict[str, Any]:
    """The results of a run that measured gangs of 8 beside Slurm."""
    found = Findings(machine={"CPUs": "2 x AMD EPYC"}, section="gangs", others=lambda: others)
    found.take("gang 8: API all addresses", [30.0, 40.0, 50.0], "ms")
    found.take("gang 8: srun+PMI2 all addresses", [80.0, 80.0, 100.0], "ms")
    found.ratio(Bar(figure="8, API", limit=0.4), "gang 8: API all addresses", "gang 8: srun+PMI2 all addresses")
    found.ratio(Bar(figure="8, shown"), "gang 8: API all addresses", "gang 8: srun+PMI2 all addresses")
    found.done(
        Part(
            at="2026-11-21 20:10 UTC",
            took=61.4,
            version="abc1234",
            quick=True,
            files="ext4",
            pace=(70.0, 71.0, 99.0),
            remarks=remarks,
        )
    )
    found.write(tmp_path / "results.json")
    read: dict[str, Any] = json.loads((tmp_path / "results.json").read_text())
    return read


def test_only_what_is_between_the_markers_changes(tmp_path: Path) -> None:
    page = with_measured(PAGE, results(tmp_path))
    assert page.startswith("# Performance\n\nBefore.\n\n")
    assert page.endswith("\n\nAfter.\n")
    assert "old" not in page
    assert with_measured(page, results(tmp_path)) == page


def test_a_bar_that_was_missed_says_so_with_its_spread_and_how_to_see_it_again(tmp_path: Path) -> None:
    row = "| 8, API | ≤ 0.4 | 0.5 (0.375 … 0.5) | **missed** | 0% | `make bench ONLY=gangs` |"
    assert row in with_measured(PAGE, results(tmp_path)).splitlines()


def test_a_figure_that_was_taken_on_a_busy_machine_says_so(tmp_path: Path) -> None:
    row = "| 8, API | ≤ 0.4 | 0.5 (0.375 … 0.5) | **missed**, not quiet | 30% | `make bench ONLY=gangs` |"
    assert row in with_measured(PAGE, results(tmp_path, others=0.3)).splitlines()


def test_figures_without_a_bar_stand_apart(tmp_path: Path) -> None:
    assert "| 8, shown | 0.5 (0.375 … 0.5) | 0% |" in with_measured(PAGE, results(tmp_path)).splitlines()


def test_medians_of_gangs_stand_side_by_side(tmp_path: Path) -> None:
    lines = with_measured(PAGE, results(tmp_path)).splitlines()
    assert "| executions | 8 |" in lines
    assert "| Muster, API: all addresses | 40 |" in lines
    assert "| plain srun: started |  |" in lines


def test_every_part_says_how_long_it_took_and_what_was_wrong(tmp_path: Path) -> None:
    page = with_measured(PAGE, results(tmp_path, remarks=("slurm is missing",)))
    row = "| gangs | 2026-11-21 20:10 UTC | 61 | 1 | 71 ms (70 … 99) | `abc1234` | ext4 | quick; slurm is missing |"
    assert row in page.splitlines()


def test_parts_of_different_machines_say_on_which_each_was_measured(tmp_path: Path) -> None:
    results(tmp_path)
    later = Findings(machine={"CPUs": "2 x Xeon"}, section="core", others=lambda: 0.0)
    part = Part(at="2026-11-22 09:00 UTC", took=20.0, version="d", quick=False, files="ext4", pace=(70.0,), remarks=())
    later.done(part)
    later.write(tmp_path / "results.json")
    lines = with_measured(PAGE, json.loads((tmp_path / "results.json").read_text())).splitlines()
    assert "Machine 1 is CPUs 2 x AMD EPYC." in lines
    assert "Machine 2 is CPUs 2 x Xeon." in lines
    assert "| core | 2026-11-22 09:00 UTC | 20 | 2 | 70 ms (70 … 70) | `d` | ext4 |  |" in lines


def test_a_part_of_which_the_speed_of_the_cpus_was_not_noted_says_so(tmp_path: Path) -> None:
    found = results(tmp_path)
    del found["parts"]["gangs"]["pace"]
    assert (
        "| gangs | 2026-11-21 20:10 UTC | 61 | 1 | not noted | `abc1234` | ext4 | quick |"
        in with_measured(PAGE, found).splitlines()
    )
