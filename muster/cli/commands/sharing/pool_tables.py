"""Pools as tables."""

from collections.abc import Sequence

from rich.console import Group

from muster.cli.output.plain.columns import Column
from muster.cli.output.tables import TextTable, facts, listing, shown
from muster.cli.output.units import labels_text
from muster.domain.fleet.pool import POOL_LABEL, Pool, PortionRule
from muster.domain.fleet.quota import amount_text
from muster.domain.fleet.standing_view import PoolView
from muster.domain.quantity import format_duration

_COLUMNS = (
    Column("POOL", least=7),
    Column("LABELS", least=10),
    Column("NODES", right=True),
    Column("GPUS HELD", right=True),
    Column("LONGEST RUN"),
    Column("LEVELS", spare=1),
)


def pools_table(views: Sequence[PoolView]) -> TextTable:
    """One line a pool; GPUs that are held of all that it has."""
    return listing(_COLUMNS, map(_row, views))


def pool_details(view: PoolView) -> Group:
    """All that is known of one pool."""
    has, held = view.capacity, view.held
    rows = (
        ("pool", view.pool.name),
        ("labels", _labels(view.pool)),
        ("longest run", _longest(view.pool)),
        ("levels", ", ".join(view.pool.levels)),
        ("portions", "over them: stopped" if view.pool.enforce is PortionRule.STOP else ""),
        ("gpus", f"{amount_text('gpus', held.gpus)} of {amount_text('gpus', has.gpus)} held"),
        ("cpus", f"{amount_text('cpus', held.cpus)} of {amount_text('cpus', has.cpus)} held"),
        ("memory", f"{amount_text('memory', held.memory)} of {amount_text('memory', has.memory)} held"),
        ("nodes", "\n".join(view.nodes)),
    )
    return Group(facts(rows), *(shown(f"warning: {warning}", "yellow") for warning in view.warnings))


def _row(view: PoolView) -> tuple[str, ...]:
    gpus = f"{view.held.gpus / 1000:g}/{view.capacity.gpus / 1000:g}"
    levels = " ".join(view.pool.levels) or "-"
    return (view.pool.name, _labels(view.pool), str(len(view.nodes)), gpus, _longest(view.pool) or "-", levels)


def _labels(pool: Pool) -> str:
    return labels_text(pool.selector) if pool.selector else f"{POOL_LABEL}={pool.name}"


def _longest(pool: Pool) -> str:
    return "" if pool.longest_run is None else format_duration(pool.longest_run)
