"""Usage as a table with bars, as a document and as CSV."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import timedelta

from muster.cli.output.documents import csv_text
from muster.cli.output.plain.columns import Column
from muster.cli.output.tables import TextTable, listing
from muster.cli.output.units import span_text
from muster.documents import Document, document
from muster.domain.fleet.quota import MILLIS_PER_GPU
from muster.domain.usage import UsageBy, UsageReport, UsageRow

_HOUR = 3600
_MIB_PER_GIB = 1024
BAR = 20
"""Cells of the longest bar."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HOURS = ("gpu_hours", "cpu_hours", "gib_hours", "lost_gpu_hours", "quota_gpu_hours", "borrowed_gpu_hours")


def usage_table(report: UsageReport) -> TextTable:
    """One line a row, with its part of all GPU hours, or of all CPU hours where no GPU was used."""
    weights = _weights(report.rows)
    total, most = sum(weights), max(weights, default=0)
    by_job = report.by is UsageBy.JOB
    columns: tuple[str | Column, ...] = (
        report.by.upper(),
        *(("NAME", Column("PROJECT", spare=1), Column("USER", spare=1)) if by_job else ()),
        Column("GPU HOURS", right=True),
        Column("PART", right=True),
        Column("", spare=2),
        Column("WITHIN QUOTA", right=True, spare=4),
        Column("BORROWED", right=True, spare=1),
        Column("BUSY", right=True, spare=1),
        Column("CPU HOURS", right=True, spare=1),
        Column("GIB HOURS", right=True, spare=3),
        Column("LOST GPU HOURS", right=True),
        Column("MEDIAN WAIT", right=True, spare=1),
        Column("LONG WAIT", right=True, spare=3),
        Column("ATTEMPTS", right=True, spare=3),
        Column("EVICTED", right=True, spare=3),
    )
    return listing(
        columns,
        (_cells(row, weight, total, most, by_job=by_job) for row, weight in zip(report.rows, weights, strict=True)),
    )


def _cells(row: UsageRow, weight: int, total: int, most: int, *, by_job: bool) -> tuple[str, ...]:
    gpus, cpus, memory, lost, within, borrowed = _hours(row).values()
    busy = _busy_hours(row)
    return (
        row.of or "-",
        *((row.name, row.project, row.user) if by_job else ()),
        f"{gpus:,.1f}",
        f"{100 * weight / total:.1f} %" if total else "-",
        bar(weight, most),
        f"{within:,.1f}",
        f"{borrowed:,.1f}",
        "-" if busy is None else f"{busy:,.1f}",
        f"{cpus:,.1f}",
        f"{memory:,.1f}",
        f"{lost:,.1f}",
        _wait_text(row.median_wait),
        _wait_text(row.long_wait),
        str(row.attempts),
        str(row.evicted),
    )


def bar(amount: int, most: int) -> str:
    """A bar as long as the amount is large; the largest amount has the longest."""
    eighths = 8 * BAR * amount // most if most else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _weights(rows: Sequence[UsageRow]) -> Sequence[int]:
    gpus = [row.held.gpus for row in rows]
    return gpus if any(gpus) else [row.held.cpus for row in rows]


def _hours(row: UsageRow) -> Mapping[str, float]:
    gpus, cpus, memory = row.held
    parts_of_gpus = (row.lost, gpus - row.borrowed, row.borrowed)
    hours = (
        gpus / MILLIS_PER_GPU,
        cpus / 1000,
        memory / _MIB_PER_GIB,
        *(part / MILLIS_PER_GPU for part in parts_of_gpus),
    )
    return {name: round(amount / _HOUR, 6) for name, amount in zip(_HOURS, hours, strict=True)}


def _busy_hours(row: UsageRow) -> float | None:
    return None if row.busy is None else round(row.busy / MILLIS_PER_GPU / _HOUR, 6)


def _wait_text(wait: timedelta | None) -> str:
    return "-" if wait is None else span_text(wait)


def _seconds(wait: timedelta | None) -> float | None:
    return None if wait is None else wait.total_seconds()


def usage_document(report: UsageReport) -> Mapping[str, Document]:
    """The report with hours in place of amounts times seconds."""
    whole = {field.name: document(getattr(report, field.name)) for field in fields(report) if field.name != "rows"}
    return {**whole, "rows": [_row(row) for row in report.rows]}


def _row(row: UsageRow) -> dict[str, Document]:
    said: dict[str, Document] = {"of": row.of, "name": row.name, "project": row.project, "user": row.user}
    told: dict[str, Document] = {"busy_gpu_hours": _busy_hours(row)}
    waits: dict[str, Document] = {
        "median_wait_seconds": _seconds(row.median_wait),
        "long_wait_seconds": _seconds(row.long_wait),
    }
    return {**said, **_hours(row), **told, **waits, "attempts": row.attempts, "evicted": row.evicted}


def usage_csv(report: UsageReport) -> str:
    """A line of column names, then a line a row."""
    return csv_text(list(_row(UsageRow(of=""))), (_row(row).values() for row in report.rows))
