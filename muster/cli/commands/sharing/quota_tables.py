"""Departments and projects with what they have, and the queue, as tables."""

from collections.abc import Iterator, Mapping, Sequence

from muster.cli.output.plain.columns import Column
from muster.cli.output.tables import TextTable, listing
from muster.cli.output.trust import permissions_text
from muster.cli.output.units import time_text
from muster.domain.fleet.access import Project
from muster.domain.fleet.quota import RESOURCES, UNLIMITED_AMOUNT, Amounts, QuotaUnit, UnitKind, amount_text
from muster.domain.fleet.quota_plan import said
from muster.domain.fleet.standing_view import PoolStandingView, QueueLine, UnitStandingView

NOTHING_SAID = "-"


def amounts_text(amounts: Amounts) -> str:
    """Amounts in a few words; `-` for nothing."""
    parts = [amount_text(what, amount) for what, amount in zip(RESOURCES, amounts, strict=True) if amount]
    if all(amount >= UNLIMITED_AMOUNT for amount in amounts):
        return "unlimited"
    return ", ".join(part for part in parts if part != "unlimited") or NOTHING_SAID


def gpus_text(amount: int) -> str:
    """GPUs as a bare number."""
    return NOTHING_SAID if amount >= UNLIMITED_AMOUNT else amount_text("gpus", amount).split()[0]


def standings_table(units: Sequence[UnitStandingView], pool: str = "") -> TextTable:
    """One line for each unit and pool, numbers of GPUs."""
    columns: tuple[str | Column, ...] = (
        "UNIT",
        "POOL",
        *(Column(name, right=True) for name in ("QUOTA", "SHARE", "HELD", "GUARANTEED", "WAITING", "LIMIT")),
        *(Column(name, right=True, spare=1) for name in ("WEIGHT", "RANK", "RUNNING", "QUEUED")),
    )
    return listing(columns, (row for unit in _as_tree(units) for row in _standing_rows(unit, pool)))


def _as_tree(units: Sequence[UnitStandingView]) -> Iterator[tuple[str, UnitStandingView]]:
    """Departments with their projects below them, then projects without one; each with how it is named."""
    projects = [each for each in units if each.unit.kind is UnitKind.PROJECT]
    for each in units:
        if each.unit.kind is UnitKind.DEPARTMENT:
            yield f"{each.unit.name}/", each
            for project in projects:
                if project.unit.department == each.unit.name:
                    yield f"  {project.unit.name}", project
    known = {each.unit.name for each in units}
    for project in projects:
        if project.unit.department not in known:
            yield project.unit.name, project


def _standing_rows(named: tuple[str, UnitStandingView], pool: str) -> Iterator[tuple[str, ...]]:
    name, view = named
    for each in view.pools:
        if not pool or each.pool == pool:
            yield (name, each.pool, *_numbers(each), str(view.running), str(view.queued))


def _numbers(each: PoolStandingView) -> tuple[str, ...]:
    amounts = (each.quota, each.share, each.held, each.guaranteed, each.waiting, each.limit)
    return (*(gpus_text(amount.gpus) for amount in amounts), str(each.weight), str(each.rank))


def terms_table(units: Sequence[QuotaUnit]) -> TextTable:
    """One line for each term that was set."""
    rows = (
        (unit.name, pool or "all", key, value)
        for unit in units
        for pool in ("", *sorted(unit.terms.pools))
        for key, value in said(unit.terms.of_pool(pool)).items()
    )
    return listing(("UNIT", "POOL", "TERM", "VALUE"), rows)


def departments_table(units: Sequence[UnitStandingView]) -> TextTable:
    """One line a department."""
    rows = (
        (
            each.unit.name,
            ", ".join(other.unit.name for other in units if other.unit.department == each.unit.name) or NOTHING_SAID,
            str(each.running),
            str(each.queued),
        )
        for each in units
        if each.unit.kind is UnitKind.DEPARTMENT
    )
    return listing(("DEPARTMENT", "PROJECTS", Column("RUNNING", right=True), Column("QUEUED", right=True)), rows)


def queue_table(lines: Sequence[QueueLine]) -> TextTable:
    """One line for each queued job."""
    rows = (
        (
            str(line.position),
            line.job or NOTHING_SAID,
            line.name or "a job of another project",
            line.project or NOTHING_SAID,
            line.pool,
            str(line.job_class),
            line.tier,
            amounts_text(line.size),
            time_text(line.since),
            line.reason,
        )
        for line in lines
    )
    columns = (Column("#", right=True), "JOB", "NAME", "PROJECT", "POOL", "CLASS", "TIER", "SIZE", "SINCE", "REASON")
    return listing(columns, rows)


def shared_projects_table(projects: Sequence[Project], units: Mapping[str, UnitStandingView]) -> TextTable:
    """One line for each project and pool: what it may have and what it holds, in GPUs."""
    rows = (
        (
            project.name,
            project.department or NOTHING_SAID,
            pool.pool,
            *_numbers(pool),
            permissions_text(project.permissions),
            time_text(project.created_at),
        )
        for project in projects
        for pool in (units[project.name].pools if project.name in units else ())
    )
    columns: tuple[str | Column, ...] = (
        "PROJECT",
        "DEPARTMENT",
        Column("POOL", spare=2),
        *(Column(name, right=True) for name in ("QUOTA", "SHARE", "HELD", "GUARANTEED", "WAITING", "LIMIT")),
        *(Column(name, right=True, spare=1) for name in ("WEIGHT", "RANK")),
        Column("OPENED FOR", spare=3, least=20),
        Column("MADE", spare=4),
    )
    return listing(columns, rows)
