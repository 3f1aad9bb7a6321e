"""Keys of job files that say when a job may begin, and for how long it is kept."""

from datetime import UTC, datetime, timedelta

import pytest

from muster.domain.jobs.job import Timeouts
from muster.jobfile import load_job
from muster.jobfile.errors import FieldError
from muster.jobfile.quantity import parse_moment

HEAD = "name: a\ncommand: x\n"


def test_a_job_file_says_when_its_job_may_begin_and_for_how_long_it_is_kept() -> None:
    spec = load_job(f"{HEAD}hold: true\nnot_before: 2026-12-01 18:00+01:00\ndelete_after: 180d\n", "job.yaml")
    assert (spec.hold, spec.not_before, spec.delete_after) == (
        True,
        datetime(2026, 12, 1, 17, tzinfo=UTC),
        timedelta(days=180),
    )


def test_a_job_file_says_how_long_its_job_may_be_in_the_queue_and_will_run() -> None:
    spec = load_job(f"{HEAD}timeouts: {{queue: 2d, run: 3d, expected: 26h}}\n", "job.yaml")
    assert spec.timeouts == Timeouts(queue=timedelta(days=2), run=timedelta(days=3), expected=timedelta(hours=26))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-12-01T18:00:00Z", datetime(2026, 12, 1, 18, tzinfo=UTC)),
        ("2026-12-01t18:00z", datetime(2026, 12, 1, 18, tzinfo=UTC)),
        ("2026-12-01 18:00:07.5 -05:30", datetime(2026, 12, 1, 23, 30, 7, 500_000, tzinfo=UTC)),
    ],
)
def test_times_are_taken_with_their_zone(written: str, meant: datetime) -> None:
    assert parse_moment(written) == meant


@pytest.mark.parametrize(
    "written",
    [
        "2026-12-01T18:00:00",
        "2026-02-30T18:00Z",
        "2026-12-01",
        "18:00",
        "tomorrow",
        "",
        1764612000,
        "2026-12-01T18:00+24:00",
    ],
)
def test_what_is_no_time_or_has_no_zone_is_refused(written: str | int) -> None:
    with pytest.raises(FieldError, match="must be a time with its zone such as 2026-12-01T18:00:00Z"):
        parse_moment(written)
