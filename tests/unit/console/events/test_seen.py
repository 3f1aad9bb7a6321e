"""Jobs that were deleted and quotas that are reached: told once, of what was seen before."""

from dataclasses import replace
from datetime import timedelta

import pytest

from console.events.seen.coordinator_book import COORDINATOR_AWAY_AFTER, CoordinatorBook
from console.events.seen.quotas import QuotaBook, reached_quotas
from console.events.seen.seen_jobs import SeenChanges, SeenJob, SeenJobs, seen_job
from console.mirror.rows import job_row
from muster.domain.event import FleetEvent
from muster.domain.fleet.quota import UNLIMITED_AMOUNT, Amounts, QuotaUnit, UnitKind
from muster.domain.fleet.standing_view import PoolStandingView, UnitStandingView
from tests.unit.console.mirrored import NOW, a_job

FULL = Amounts(UNLIMITED_AMOUNT, UNLIMITED_AMOUNT, UNLIMITED_AMOUNT)


def holding(held: Amounts, quota: Amounts, *, name: str = "red", kind: UnitKind = UnitKind.PROJECT) -> UnitStandingView:
    pool = PoolStandingView(
        pool="fast",
        quota=quota,
        limit=FULL,
        weight=1,
        rank=0,
        share=Amounts(),
        held=held,
        guaranteed=Amounts(),
        waiting=Amounts(),
    )
    return UnitStandingView(unit=QuotaUnit(name=name, kind=kind), pools=(pool,))


def ids(seen: SeenChanges) -> tuple[list[str], list[str]]:
    return [each.job.id for each in seen.new], [each.job.id for each in seen.gone]


def test_a_job_that_is_there_no_more_was_deleted() -> None:
    jobs = SeenJobs({})
    rows = [job_row(a_job("a", labels={"team": "x"})), job_row(a_job("b"))]
    first = jobs.look(rows)
    jobs.note(first)
    again = jobs.look(rows)
    gone = jobs.look(rows[:1])
    jobs.note(gone)
    told = gone.gone[0].deleted(NOW, "f1ee7")
    assert [ids(each) for each in (first, again, gone, jobs.look(rows[:1]))] == [
        (["a", "b"], []),
        ([], []),
        ([], ["b"]),
        ([], []),
    ]
    assert (told.event.id, told.fleet, told.job) == ("job/b/1/deleted", "f1ee7", gone.gone[0].job)


def test_a_job_that_was_deleted_while_the_console_was_away_is_told_with_what_it_wrote() -> None:
    written = seen_job(job_row(a_job("a", project="blue", labels={"team": "x"}))).written
    read = SeenJob.read(written)
    gone = SeenJobs({read.job.id: read}).look([])
    assert (ids(gone), gone.gone[0].job.project, gone.gone[0].job.labels) == (([], ["a"]), "blue", {"team": "x"})


def test_a_change_that_the_disk_did_not_take_is_found_again() -> None:
    jobs = SeenJobs({"a": seen_job(job_row(a_job("a")))})  # type: ignore[dict-item]  # an id is a text
    assert ids(jobs.look([])) == ids(jobs.look([])) == ([], ["a"])


@pytest.mark.parametrize(
    ("unit", "reached"),
    [
        (holding(Amounts(8000), Amounts(8000)), ["gpus"]),
        (holding(Amounts(7999), Amounts(8000)), []),
        (holding(Amounts(9000, 64_000, 4096), Amounts(8000, 64_000, 4096)), ["gpus", "cpus", "memory"]),
        (holding(Amounts(0), Amounts(0)), []),
        (holding(Amounts(8000), FULL), []),
        (holding(Amounts(8000), Amounts(8000), kind=UnitKind.DEPARTMENT), []),
    ],
)
def test_a_quota_is_reached_when_nothing_of_it_is_left(unit: UnitStandingView, reached: list[str]) -> None:
    assert [place.resource for place in reached_quotas([unit])] == reached


def test_a_quota_that_is_reached_is_told_once_each_time() -> None:
    book, quota = QuotaBook(), Amounts(8000, 64_000)
    looks = [Amounts(8000), Amounts(8000, 64_000), Amounts(8000, 64_000), Amounts(), Amounts(1), Amounts(8000)]
    told = [book.note(reached_quotas([holding(held, quota)]), NOW) for held in looks]
    texts = [[event.sentence for event in events] for events in told]
    assert texts == [
        [],
        ["project has reached its quota: red, all 64 CPUs of its quota in pool fast are held"],
        [],
        [],
        [],
        ["project has reached its quota: red, all 8 GPUs of its quota in pool fast are held"],
    ]


def test_several_quotas_of_a_project_that_are_reached_at_once_are_one_event() -> None:
    book, quota = QuotaBook(), Amounts(1000, 0, 2048)
    book.note({}, NOW)
    [event] = book.note(reached_quotas([holding(quota, quota)]), NOW)
    assert isinstance(event, FleetEvent)
    assert event.text == (
        "all 1 GPU of its quota in pool fast are held; all 2 GiB of memory of its quota in pool fast are held"
    )
    assert replace(event, text="").project == "red"


def test_a_coordinator_that_is_not_heard_for_long_is_told_once_and_then_that_it_is_back() -> None:
    book, second = CoordinatorBook(), timedelta(seconds=1)
    long = timedelta(seconds=COORDINATOR_AWAY_AFTER)
    heard = book.note(NOW, heard=True)
    soon = book.note(NOW + long - second, heard=False)
    away = book.note(NOW + long, heard=False)
    still = book.note(NOW + 2 * long, heard=False)
    back = book.note(NOW + 3 * long, heard=True)
    assert heard is soon is still is None
    assert away is not None
    assert back is not None
    assert away.sentence == "coordinator is away: the console has not heard it for 45s"
    assert back.sentence == "coordinator is back: the console had not heard it for 2m15s"


def test_a_coordinator_that_is_back_in_time_or_was_never_heard_is_no_news() -> None:
    book, long = CoordinatorBook(), timedelta(seconds=COORDINATOR_AWAY_AFTER)
    never = book.note(NOW, heard=False), book.note(NOW + long, heard=False)
    book.note(NOW + long, heard=True)
    assert (*never, book.note(NOW + 1.5 * long, heard=False)) == (None, None, None)
    assert book.note(NOW + 1.6 * long, heard=True) is None
