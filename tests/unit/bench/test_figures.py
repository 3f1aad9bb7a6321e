"""What is kept of a measurement, and how it is compared."""

import json
import math
import statistics
from pathlib import Path

import pytest

from bench.figures import PACE, Bar, Findings, Part, number

BAR = Bar(figure="ours / theirs", limit=0.5)


def findings(section: str = "gangs") -> Findings:
    return Findings(machine={"CPUs": "2"}, section=section, others=lambda: 0.02)


def part(*remarks: str) -> Part:
    return Part(
        at="2026-11-21 20:10 UTC",
        took=12.5,
        version="abc1234",
        quick=False,
        files="ext4",
        pace=(70.0,),
        remarks=remarks,
    )


def test_a_ratio_is_that_of_the_medians_and_its_spread_that_of_the_turns() -> None:
    found = findings()
    found.take("ours", [1, 2, 3], "ms")
    found.take("theirs", [2, 8, 4], "ms")
    found.ratio(BAR, "ours", "theirs")
    (verdict,) = found.verdicts
    assert (verdict.value, verdict.spread, verdict.met) == (0.5, (0.25, 0.75), True)


def test_an_excess_is_the_median_of_what_the_turns_differ_by() -> None:
    found = findings()
    found.take("ours", [1.0, 2.0, 9.0], "s")
    found.take("theirs", [0.5, 1.9, 7.0], "s")
    found.excess(Bar(figure="over", limit=0.1, unit="s"), "ours", "theirs")
    (verdict,) = found.verdicts
    assert (verdict.value, verdict.met) == (0.5, False)
    assert verdict.spread == pytest.approx((0.1, 2.0))


def test_an_excess_may_be_the_mean_of_what_the_turns_differ_by() -> None:
    found = findings()
    found.take("ours", [1.0, 2.0, 9.0], "s")
    found.take("theirs", [0.5, 2.0, 8.0], "s")
    found.excess(Bar(figure="over", limit=0.1, unit="s"), "ours", "theirs", statistics.fmean)
    (verdict,) = found.verdicts
    assert (verdict.value, verdict.met) == (0.5, False)


def test_series_that_were_not_taken_in_turns_have_no_pairs() -> None:
    found = findings()
    found.take("ours", [3.0, 5.0, 4.0], "s")
    found.take("theirs", [1.0], "s")
    found.excess(Bar(figure="over", unit="s"), "ours", "theirs")
    (verdict,) = found.verdicts
    assert (verdict.value, verdict.spread, verdict.met) == (3.0, None, None)


def test_without_a_peer_nothing_is_judged() -> None:
    found = findings()
    found.take("ours", [1], "ms")
    found.ratio(BAR, "ours", "theirs")
    assert found.verdicts == []


def test_the_busiest_of_its_series_counts_for_a_comparison() -> None:
    found = findings()
    found.take("ours", [1], "ms")
    found.others = lambda: 0.4
    found.take("theirs", [1], "ms")
    found.ratio(BAR, "ours", "theirs")
    assert found.verdicts[0].busy == 0.4


def test_measurements_that_were_taken_apart_compare_in_multiples_of_what_counting_took() -> None:
    found = findings()
    found.pace = [70.0]
    calm = found.take("calm", [2.0, 2.1, 1.0], "s")
    found.pace = [70.0, 140.0]
    slow = found.take("slow", [4.0], "s")
    assert (calm.pace, slow.pace) == (70.0, 140.0)
    assert calm.paced == slow.paced


def test_a_bar_of_cpu_time_is_for_a_machine_of_a_pace() -> None:
    found = findings()
    found.pace.append(2 * PACE)
    found.take("cycle", [6.0, 8.0, 9.0], "ms")
    found.at_pace(Bar(figure="cycle", limit=5, unit="ms"), "cycle")
    found.at_pace(Bar(figure="slowest", limit=4, unit="ms"), "cycle", max)
    verdict, slowest = found.verdicts
    assert (verdict.value, verdict.spread, verdict.met) == (4.0, (3.0, 4.5), True)
    assert verdict.of == "cycle, if counting to ten million took 70 ms"
    assert (slowest.value, slowest.met) == (4.5, False)


def test_a_measurement_may_have_a_pace_of_its_own_which_those_after_it_have_too() -> None:
    found = findings()
    found.pace.append(PACE)
    found.take("cycle", [6.0], "ms", 3 * PACE)
    found.take("next", [6.0], "ms")
    found.at_pace(Bar(figure="cycle", limit=2, unit="ms"), "cycle")
    assert [verdict.value for verdict in found.verdicts] == [2.0]
    assert found.series["next"].pace == 3 * PACE


def test_what_was_taken_without_counting_is_not_compared_so() -> None:
    with pytest.raises(ValueError, match="calm: nobody counted"):
        _ = findings().take("calm", [2.0], "s").paced


def test_more_is_better_where_the_bar_says_so() -> None:
    assert Bar(figure="rate", limit=1.5, at_least=True).met_by(1.5)
    assert not Bar(figure="time", limit=1.5).met_by(1.6)


def written(file: Path, *runs: Findings) -> dict[str, dict[str, dict[str, object]]]:
    for each in runs:
        each.write(file)
    found: dict[str, dict[str, dict[str, object]]] = json.loads(file.read_text())
    return found


def test_a_section_that_was_measured_again_leaves_nothing_of_the_run_before(tmp_path: Path) -> None:
    before, after = findings(), findings()
    before.take("gang 8: gone since", [1], "ms")
    before.done(part())
    after.take("gang 8: new", [2], "ms")
    after.done(part("not quiet"))
    found = written(tmp_path / "results.json", before, after)
    assert set(found["series"]) == {"gang 8: new"}
    assert found["parts"]["gangs"]["remarks"] == ["not quiet"]


def test_what_earlier_runs_found_in_other_sections_stays(tmp_path: Path) -> None:
    before, after = findings("core"), findings()
    before.take("cycle", [1], "ms")
    before.absolute(Bar(figure="cycle", limit=5, unit="ms"), "cycle")
    before.done(part())
    after.take("gang 8", [2], "ms")
    after.done(part())
    found = written(tmp_path / "results.json", before, after)
    assert set(found["series"]) == {"cycle", "gang 8"}
    assert set(found["verdicts"]) == {"cycle"}
    assert set(found["parts"]) == {"core", "gangs"}


def test_what_was_not_reached_is_null_in_json(tmp_path: Path) -> None:
    found = findings("scale")
    found.judge(Bar(figure="release", limit=0.35, unit="s"), math.inf, "")
    found.done(part())
    verdict = written(tmp_path / "results.json", found)["verdicts"]["release"]
    assert (verdict["value"], verdict["shown"], verdict["met"]) == (None, "not reached", False)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (0.04159, "0.0416"), (1234.5, "1,234"), (-4.0321, "-4.03"), (math.inf, "not reached")],
)
def test_numbers_have_three_digits_that_say_something(value: float, shown: str) -> None:
    assert number(value) == shown
