"""The command metrics: tables, charts and documents of what jobs print."""

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest

from muster.cli.exit_codes import ExitCode
from muster.domain.ids import JobId
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.view import JobView
from muster.domain.telemetry.point import Point, RankPoints
from muster.rpc.v1 import jobs_pb2
from tests.integration.canned_coordinator import Canned, serving
from tests.integration.command_line import Muster
from tests.unit.cli import values

START = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)


def job(name: str) -> JobView:
    ended = values.job(JobPhase.SUCCEEDED, failure=None)
    return replace(ended, id=JobId(f"id-{name}"), spec=replace(values.SPEC, name=name))


def points(rank: int, *losses: float) -> RankPoints:
    made = tuple(
        Point(time=START + timedelta(seconds=step), values={"step": step, "loss": loss}, texts={"phase": "warm"})
        for step, loss in enumerate(losses)
    )
    return RankPoints(rank=rank, attempt=1, points=made, all=len(made))


@pytest.fixture
def muster() -> Iterator[Muster]:
    canned = Canned(jobs=[job("train"), job("other")])
    with serving(canned) as address:
        yield Muster(canned, address)


def test_a_table_has_the_last_number_of_each_key_and_how_it_went(muster: Muster) -> None:
    muster.canned.points = [[points(0, 4, 2, 1), points(1, 8, 4, 2)]]

    head, *rows = muster("metrics", "train").stdout.splitlines()

    assert head.split() == ["KEY", "OF", "LAST", "LEAST", "MOST", "TREND"]
    assert [row.split() for row in rows] == [
        ["loss", "rank", "0", "1", "1", "4", "█▃▁"],
        ["loss", "rank", "1", "2", "2", "8", "█▃▁"],
        ["phase", "rank", "0", "warm"],
        ["phase", "rank", "1", "warm"],
    ]


def test_jobs_are_compared_by_their_names(muster: Muster) -> None:
    muster.canned.points = [[points(0, 1)], [points(0, 2)]]

    _, *rows = muster("metrics", "train", "other", "-k", "loss").stdout.splitlines()

    assert [row.split()[:5] for row in rows if row.startswith("loss")] == [
        ["loss", "train", "rank", "0", "1"],
        ["loss", "other", "rank", "0", "2"],
    ]


def test_what_is_wanted_is_asked_of_the_coordinator(muster: Muster) -> None:
    words = ("-k", "loss", "--key", "lr", "--rank", "0,2-3", "--most", "7", "--attempt", "2")

    assert muster("metrics", "train", *words).exit_code == ExitCode.SUCCESS
    assert muster.canned.asked_for(jobs_pb2.PointsRequest) == [
        jobs_pb2.PointsRequest(job="id-train", keys=["loss", "lr"], ranks=[0, 2, 3], most=7, attempt=2)
    ]


def test_a_chart_has_its_bounds_and_a_name_for_each_line(muster: Muster) -> None:
    muster.canned.points = [[points(0, 4, 2, 1), points(1, 8, 4, 2)]]

    title, *lines = muster("metrics", "train", "--plot").stdout.splitlines()

    assert title == "loss"
    assert lines[0].split()[0] == "8"
    assert [line.split()[0] for line in lines if "┤" in line][-1] == "1"
    assert lines[-2].split() == ["0", "step", "2"]
    assert lines[-1].split() == ["━", "rank", "0", "━", "rank", "1"]


@pytest.mark.parametrize(("words", "lowest"), [((), "0"), (("--smooth", "0.5"), "1.143"), (("--log-scale",), "1")])
def test_a_chart_is_smoothed_or_logarithmic_if_wanted(muster: Muster, words: tuple[str, ...], lowest: str) -> None:
    muster.canned.points = [[points(0, 4, 0, 1)]]

    title, *lines = muster("metrics", "train", "--plot", *words).stdout.splitlines()
    bounds = [line.split()[0] for line in lines if "┤" in line]

    assert title == ("loss (logarithmic)" if "--log-scale" in words else "loss")
    assert (bounds[0], bounds[-1]) == ("4", lowest)


def test_documents_and_rows_have_every_point(muster: Muster) -> None:
    muster.canned.points = [[points(0, 4, 2)], [points(0, 4, 2)]]

    [document] = json.loads(muster("metrics", "train", "-o", "json").stdout)
    head, *rows = csv.reader(StringIO(muster("metrics", "train", "-o", "csv").stdout))

    assert (document["job"], document["rank"], document["attempt"], document["all"]) == ("train", 0, 1, 2)
    assert [point["values"] for point in document["points"]] == [{"step": 0.0, "loss": 4.0}, {"step": 1.0, "loss": 2.0}]
    assert head == ["job", "attempt", "rank", "time", "step", "loss", "phase"]
    assert rows == [
        ["train", "1", "0", "2026-11-21T09:30:00Z", "0.0", "4.0", "warm"],
        ["train", "1", "0", "2026-11-21T09:30:01Z", "1.0", "2.0", "warm"],
    ]


def test_each_point_comes_on_a_line_while_a_job_is_followed(muster: Muster) -> None:
    script = [points(0, 4), points(1, 8)]
    muster.canned.points = [script, script]

    lines = muster("metrics", "train", "-f").stdout.splitlines()
    documents = [json.loads(line) for line in muster("metrics", "train", "-f", "-o", "json").stdout.splitlines()]

    assert [line.split("  ")[1:] for line in lines] == [
        ["rank 0", "step=0 loss=4 phase=warm"],
        ["rank 1", "step=0 loss=8 phase=warm"],
    ]
    assert [(each["rank"], each["point"]["values"]["loss"]) for each in documents] == [(0, 4.0), (1, 8.0)]


def test_a_followed_chart_is_left_standing_at_the_end(muster: Muster) -> None:
    muster.canned.points = [[points(0, 4), points(1, 8)]]

    shown = muster("metrics", "train", "-f", "--plot").stdout.splitlines()

    assert shown[0] == "loss"
    assert shown[-1].split() == ["━", "rank", "0", "━", "rank", "1"]


@pytest.mark.parametrize(
    ("said", "words", "sentence"),
    [
        ([RankPoints(rank=0, attempt=1)], (), "no point was printed so far"),
        ([RankPoints(rank=0, attempt=1)], ("--plot",), "no point was printed so far"),
        ([RankPoints(rank=0, attempt=1, all=9)], ("-k", "lost"), "leave out --key to see what there is"),
    ],
)
def test_where_there_is_nothing_it_is_said_why(
    muster: Muster, said: list[RankPoints], words: tuple[str, ...], sentence: str
) -> None:
    muster.canned.points = [said]

    done = muster("metrics", "train", *words)

    assert (done.exit_code, done.stdout) == (ExitCode.SUCCESS, "")
    assert sentence in done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("train", "--plot", "-o", "json"), "a chart is for people"),
        (("train", "other", "-f"), "one job is followed at a time"),
        (("train", "-f", "-o", "csv"), "CSV has all points at once"),
        (("train", "--rank", "x"), "--rank"),
    ],
)
def test_options_that_do_not_go_together_are_refused(muster: Muster, words: tuple[str, ...], sentence: str) -> None:
    done = muster("metrics", *words)

    assert done.exit_code == ExitCode.USAGE
    assert sentence in " ".join(done.stderr.split())
