"""Usage as people see it: bars, hours, and rows for spreadsheets."""

from datetime import UTC, datetime, timedelta
from io import StringIO

from rich.console import Console

from muster.cli.commands.sharing.usage_tables import BAR, bar, usage_csv, usage_document, usage_table
from muster.domain.fleet.quota import Amounts
from muster.domain.usage import UsageBy, UsageReport, UsageRow

UNTIL = datetime(2026, 11, 30, tzinfo=UTC)
HOUR = 3600


def row(of: str, gpus: float, cpus: float = 0, **more: object) -> UsageRow:
    """A row with so many GPU and CPU hours."""
    held = Amounts(int(gpus * 1000 * HOUR), int(cpus * 1000 * HOUR), 1536 * HOUR)
    return UsageRow(of=of, attempts=2, evicted=1, held=held, lost=250 * HOUR, **more)  # type: ignore[arg-type]  # a builder takes any field


def report(*rows: UsageRow, by: UsageBy = UsageBy.PROJECT) -> UsageReport:
    return UsageReport(by=by, since=None, until=UNTIL, rows=rows)


def shown(told: UsageReport) -> list[list[str]]:
    """The words of each line."""
    text = StringIO()
    Console(file=text, width=200).print(usage_table(told))
    return [line.split() for line in text.getvalue().splitlines()]


def test_the_largest_has_the_longest_bar_and_the_others_one_in_proportion() -> None:
    assert bar(8, 8) == "█" * BAR
    assert bar(4, 8) == "█" * (BAR // 2)
    assert bar(1, 160) == "▏"
    assert bar(0, 8) == bar(0, 0) == ""


def test_rows_have_hours_their_part_of_all_and_a_bar() -> None:
    [_, vision, other] = shown(report(row("vision", 1200), row("", 400)))
    assert vision[:8] == ["vision", "1,200.0", "75.0", "%", "█" * BAR, "1,200.0", "0.0", "-"]
    assert vision[8:] == ["0.0", "1.5", "0.2", "-", "-", "2", "1"]
    assert other[:4] == ["-", "400.0", "25.0", "%"]


def test_rows_say_what_was_borrowed_how_much_of_it_was_busy_and_how_long_attempts_waited() -> None:
    told = row(
        "vision",
        10,
        borrowed=2500 * HOUR,
        busy=8000 * HOUR,
        median_wait=timedelta(minutes=2, seconds=5),
        long_wait=timedelta(hours=3),
    )
    [_, line] = shown(report(told))
    assert line[5:8] == ["7.5", "2.5", "8.0"]
    assert " ".join(line[11:]) == "2 min 5 s 3 h 2 1"
    head, said = (line.split(",") for line in usage_csv(report(told)).splitlines())
    of = dict(zip(head, said, strict=True))
    assert (of["gpu_hours"], of["quota_gpu_hours"], of["borrowed_gpu_hours"]) == ("10.0", "7.5", "2.5")
    assert (of["busy_gpu_hours"], of["median_wait_seconds"], of["long_wait_seconds"]) == ("8.0", "125.0", "10800.0")


def test_where_no_gpu_was_used_parts_are_of_cpu_hours() -> None:
    [_, only, idle] = shown(report(row("a", 0, 6), row("b", 0, 0)))
    assert only[:4] == ["a", "0.0", "100.0", "%"]
    assert idle[:4] == ["b", "0.0", "0.0", "%"]


def test_jobs_have_their_names_projects_and_users() -> None:
    job = row("q1w2", 1, name="train", project="vision", user="ann")
    [head, line] = shown(report(job, by=UsageBy.JOB))
    assert head[:4] == ["JOB", "NAME", "PROJECT", "USER"]
    assert line[:4] == ["q1w2", "train", "vision", "ann"]


def test_documents_and_csv_have_the_same_keys() -> None:
    told = report(row("vision, 2", 0.5))
    rows = usage_document(told)["rows"]
    head, line = usage_csv(told).splitlines()
    assert isinstance(rows, list)
    assert isinstance(rows[0], dict)
    assert head == ",".join(rows[0])
    assert line == '"vision, 2",,,,0.5,0.0,1.5,0.25,0.5,0.0,,,,2,1'
    assert usage_document(told)["until"] == "2026-11-30T00:00:00Z"
