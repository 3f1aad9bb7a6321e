"""Amounts and terms as people read them."""

from collections.abc import Mapping
from datetime import timedelta

from coordinator.core.sharing.precedence import Bar, BarKind
from muster.domain.fleet.quota import RESOURCES, Amounts, amount_text
from muster.domain.quantity import counted, format_duration


def bar_text(bar: Bar, size: Amounts) -> str:
    """Why a job of a size waits for its own department or project."""
    what = RESOURCES[bar.place]
    needs = f"and this needs {amount_text(what, size[bar.place])}"
    held, bound = amount_text(what, bar.holds), amount_text(what, bar.bound)
    match bar.kind:
        case BarKind.LIMIT:
            return f"{bar.unit} holds {held} of its limit of {bound} in pool {bar.pool}, {needs}"
        case BarKind.QUOTA:
            return (
                f"guaranteed jobs of {bar.unit} hold {held} of its quota of {bound} in pool {bar.pool}, {needs}; a "
                "preemptible job may have more than the quota"
            )
        case BarKind.MAX_RUNNING:
            return f"{counted(bar.holds, 'job')} of {bar.unit} run, as many as may (max_running: {bar.bound})"
        case BarKind.MAX_RUNNING_PER_USER:
            return (
                f"{counted(bar.holds, 'job')} of its owner run in {bar.unit}, as many as may "
                f"(max_running_per_user: {bar.bound})"
            )
        case BarKind.LONGEST_RUN:
            return longest_run_text(timedelta(seconds=bar.holds), {bar.pool: timedelta(seconds=bar.bound)})
        case BarKind.TURN:
            return f"job {bar.waits_for} has waited long for what {bar.unit} may have, so it goes first"


def longest_run_text(limit: timedelta, longest: Mapping[str, timedelta]) -> str:
    """Why a job that may run for so long is not placed in pools where nothing runs as long."""
    pools = ", and ".join(
        f"in pool {pool} nothing runs longer than {format_duration(most)}" for pool, most in longest.items()
    )
    return f"it may run for {format_duration(limit)} (timeouts.run), and {pools}"


def never_text(bar: Bar, size: Amounts, pool: str) -> str:
    """Why a job of a size could never run in its project."""
    what = RESOURCES[bar.place]
    needs, bound = amount_text(what, size[bar.place]), amount_text(what, bar.bound)
    if bar.kind is BarKind.LIMIT:
        return f"it needs {needs} in pool {pool}, and {bar.unit} never has more than its limit of {bound}"
    return (
        f"it needs {needs} in pool {pool}, and guaranteed jobs of {bar.unit} never have more than its quota of {bound}"
        "; with class: preemptible it may have more"
    )
