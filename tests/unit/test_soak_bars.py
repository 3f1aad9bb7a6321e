"""How a soak is judged."""

from dataclasses import replace

import pytest

from tests.soak.bars import HOUR, P99, SHORT, SHORT_P99, Call, Sample, Seen, growth, judged, percentile, table

GOOD = Seen(
    seconds=HOUR,
    calls=[Call(what="Get", seconds=0.01)] * 99 + [Call(what="Get", seconds=3.0)],
    samples=[Sample(at=float(at), resident=100 + (50 if at > 600 else at / 12), journal=at) for at in range(3600)],
    nodes=200,
    connected=200,
)


def missed(seen: Seen) -> list[str]:
    return [row.bar for row in judged(seen) if not row.met]


def test_what_is_answered_flat_and_quiet_holds() -> None:
    assert missed(GOOD) == []
    assert table(GOOD, judged(GOOD)).splitlines()[-1] == "held for 60 minutes"


@pytest.mark.parametrize(
    ("seen", "bar"),
    [
        (replace(GOOD, calls=[Call(what="Get", seconds=P99 + 0.1)] * 10), "admin's calls, p99"),
        (replace(GOOD, calls=[*GOOD.calls, Call(what="Stop", seconds=0.1, lost="refused")]), "admin's calls lost"),
        (replace(GOOD, calls=[]), "calls made"),
        (replace(GOOD, connected=199), "nodes not connected in the end"),
        (replace(GOOD, ended="the coordinator ended"), "programs that ended by themselves"),
        (
            replace(GOOD, samples=[replace(each, journal=each.journal * 500) for each in GOOD.samples]),
            "journal",
        ),
        (
            replace(GOOD, samples=[replace(each, resident=100 + each.at / 40) for each in GOOD.samples]),
            "memory grown after the warm-up",
        ),
    ],
)
def test_each_bar_can_be_missed_alone(seen: Seen, bar: str) -> None:
    assert missed(seen) == [bar]
    assert table(seen, judged(seen)).splitlines()[-1] == f"missed: {bar}"


def test_only_a_short_soak_may_be_slower() -> None:
    slow = replace(GOOD, seconds=SHORT - 1, calls=[Call(what="Get", seconds=SHORT_P99)])

    assert missed(replace(slow, samples=[])) == []
    assert missed(replace(slow, samples=[], seconds=SHORT)) == ["admin's calls, p99"]
    assert missed(replace(slow, samples=[], calls=[Call(what="Get", seconds=SHORT_P99 + 0.1)])) == [
        "admin's calls, p99"
    ]


def test_growth_is_that_of_a_line_through_the_least_of_each_round_after_the_warm_up() -> None:
    waves = [Sample(at=float(at), resident=200 + at * 0.01 + at % 30, journal=0) for at in range(1000)]

    assert growth(replace(GOOD, seconds=1000, samples=waves)) == pytest.approx(7.2, abs=0.2)
    assert growth(replace(GOOD, seconds=1000, samples=waves[:270])) == 0


@pytest.mark.parametrize(("values", "percent", "found"), [([], 99, 0.0), ([1.0], 99, 1.0), ([3.0, 1.0, 2.0], 50, 2.0)])
def test_a_percentile_is_a_value_that_was_seen(values: list[float], percent: int, found: float) -> None:
    assert percentile(values, percent) == found


def test_the_journal_may_tell_of_each_job_that_was_submitted() -> None:
    told = [replace(each, journal=each.journal * 300) for each in GOOD.samples]
    assert missed(replace(GOOD, samples=told)) == ["journal"]
    assert missed(replace(GOOD, samples=told, calls=[*GOOD.calls, *[Call(what="Submit", seconds=0.1)] * 100])) == []
