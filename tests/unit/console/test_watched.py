"""What is kept of a job for its viewers: each is told what it has not read, however late or slow it is."""

import json
from datetime import timedelta
from typing import Any

import pytest

from console.api.mirrored.live_seats import LiveSeats
from console.api.mirrored.live_wishes import LiveWishes, live_wishes
from console.watched.kept import KeptJob, KeptLines, KeptPoints
from console.watched.wish import WatchedPart, WatchWish
from muster.domain.errors import ExhaustedError, InvalidJobError
from muster.domain.feed import FeedPart
from muster.domain.ids import JobId
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.view import LogLine
from muster.domain.telemetry.point import Point, RankPoints
from tests.unit.console.mirrored import NOW, a_job

LOGS = WatchWish(WatchedPart.LOGS, JobId("a"))
POINTS = WatchWish(WatchedPart.POINTS, JobId("a"), "loss")


def a_line(text: str) -> LogLine:
    return LogLine(rank=0, stream="stdout", time=NOW, text=text.encode())


def lines_of(*texts: str, most: int = 3, most_bytes: int = 10_000) -> KeptLines:
    kept = KeptLines(LOGS, most, most_bytes)
    for text in texts:
        kept.take(a_line(text))
    return kept


def told(kept: KeptJob | KeptLines | KeptPoints, known: int = -1) -> Any:
    news = kept.since(known)
    return None if news is None else json.loads(news)


def texts(news: Any) -> list[str]:
    return [line["text"] for line in news["logs"]["lines"]]


def points(rank: int, *losses: float, attempt: int = 1) -> RankPoints:
    found = [
        Point(time=NOW + timedelta(seconds=step), values={"step": float(step), "loss": loss, "other": 1.0})
        for step, loss in enumerate(losses)
    ]
    return RankPoints(rank=rank, attempt=attempt, points=found)


def test_a_job_is_told_as_it_is_and_only_once() -> None:
    kept = KeptJob(WatchWish(WatchedPart.JOB, JobId("a")))
    assert told(kept) is None
    kept.take(a_job("a"))
    kept.take(a_job("a", phase=JobPhase.RUNNING))
    assert told(kept)["job"]["phase"] == told(kept, known=1)["job"]["phase"] == "running"
    assert told(kept, known=2) is None


def test_who_comes_late_is_told_the_newest_lines_and_who_reads_along_what_comes() -> None:
    kept = lines_of("1", "2", "3", "4")
    late, next_one = told(kept), told(kept, known=3)
    assert (late["logs"]["job"], late["logs"]["anew"], texts(late)) == ("a", True, ["2", "3", "4"])
    assert (texts(next_one), "anew" in next_one["logs"], "missed" in next_one["logs"]) == (["4"], False, False)
    assert told(kept, known=4) is None


def test_who_reads_slowly_is_told_how_many_lines_are_missing() -> None:
    slow = told(lines_of("1", "2", "3", "4", "5", "6"), known=1)
    assert (slow["logs"]["missed"], texts(slow)) == (2, ["4", "5", "6"])


def test_lines_take_no_more_bytes_than_they_may() -> None:
    kept = lines_of("x" * 300, "y" * 300, "z" * 300, most_bytes=900)
    assert [text[0] for text in texts(told(kept))] == ["y", "z"]
    assert texts(told(lines_of("x" * 300, most_bytes=10))) == ["x" * 300]


def test_a_stream_that_begins_anew_says_so_to_everybody() -> None:
    kept = lines_of("1", "2")
    kept.begin_anew()
    assert (told(kept, known=2)["logs"]["anew"], texts(told(kept, known=2))) == (True, [])
    kept.take(a_line("1"))
    assert (told(kept, known=2)["logs"]["anew"], texts(told(kept, known=3))) == (True, ["1"])
    assert "anew" not in told(kept, known=3)["logs"]


def test_points_are_told_by_rank_with_their_steps_alone() -> None:
    kept = KeptPoints(POINTS)
    kept.take(points(1, 0.5, 0.4))
    kept.take(points(0, 0.7))
    first, later = told(kept)["points"], told(kept, known=2)["points"]
    assert (first["job"], first["key"], first["anew"]) == ("a", "loss", True)
    assert [(each["rank"], [point["values"] for point in each["points"]]) for each in first["ranks"]] == [
        (0, [{"loss": 0.7, "step": 0.0}]),
        (1, [{"loss": 0.5, "step": 0.0}, {"loss": 0.4, "step": 1.0}]),
    ]
    assert ([each["rank"] for each in later["ranks"]], "anew" in later) == ([0], False)


def test_points_without_the_key_are_no_news() -> None:
    kept = KeptPoints(WatchWish(WatchedPart.POINTS, JobId("a"), "accuracy"))
    kept.take(points(0, 0.7))
    assert told(kept)["points"]["ranks"] == []
    assert told(kept, known=0) is None


def test_points_of_attempts_before_go_with_the_next_one() -> None:
    kept = KeptPoints(POINTS)
    kept.take(points(0, 0.9))
    kept.take(points(0, 0.8, attempt=2))
    assert [(each["attempt"], len(each["points"])) for each in told(kept)["points"]["ranks"]] == [(2, 1)]


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ([], LiveWishes((FeedPart.JOBS,), ())),
        (["jobs,queue", "jobs"], LiveWishes((FeedPart.JOBS, FeedPart.QUEUE), ())),
        (["job_rows", "nodes"], LiveWishes((FeedPart.NODES,), (), brief_jobs=True)),
        (["logs:a,points:a:loss"], LiveWishes((), (LOGS, POINTS))),
        (["points:a:val:loss"], LiveWishes((), (WatchWish(WatchedPart.POINTS, JobId("a"), "val:loss"),))),
    ],
)
def test_a_live_stream_tells_what_is_written(written: list[str], wanted: LiveWishes) -> None:
    assert live_wishes(written) == wanted


@pytest.mark.parametrize(
    "written", ["job", "job:", "logs:a:b", "points:a", "points:a:", "weather:a", ",".join(["jobs"] * 21)]
)
def test_what_nobody_can_tell_is_refused(written: str) -> None:
    with pytest.raises(InvalidJobError):
        live_wishes([written])


def test_a_caller_has_so_many_live_streams_and_all_together_so_many() -> None:
    seats = LiveSeats(most=3, of_one=2)
    with seats.seat("ada"), seats.seat("ada"):
        with pytest.raises(ExhaustedError, match="2 live streams of this token"), seats.seat("ada"):
            pass
        with seats.seat("bob"), pytest.raises(ExhaustedError, match="3 live streams are open"), seats.seat("eve"):
            pass
    with seats.seat("ada"):
        pass
