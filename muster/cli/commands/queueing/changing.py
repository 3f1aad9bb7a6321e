"""The command that makes submitted jobs other than they are: change."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from muster.cli.commands.queueing.holding import order_each
from muster.cli.commands.tokens import span_of
from muster.cli.context import answers, session_of
from muster.cli.job_choice import LIVE_PHASES, UNPLACED_PHASES, All, Jobs, Name, Yes, choice_of, chosen
from muster.cli.options import Labels, Mine, Output, Phases, Projects, time_of
from muster.cli.output.documents import Format
from muster.domain.errors import InvalidJobError
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.placing.pool_choice import PoolChoice
from muster.domain.jobs.queueing.change import WITHOUT_LIMIT, JobChange

_NONE = "none"
"""The word that takes a limit away."""
_ANY = "any"
"""The word for all pools; alone."""


@answers
async def change(
    context: typer.Context,
    jobs: Jobs = None,
    *,
    priority: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="New priority, -1000 to 1000; also while the job runs.")
    ] = None,
    limit: Annotated[
        str | None, typer.Option(metavar="TIME", help="New limit on run time, `timeouts.run`: `3h`, or `none`.")
    ] = None,
    queue_limit: Annotated[
        str | None, typer.Option(metavar="TIME", help="New limit on time in the queue, `timeouts.queue`, or `none`.")
    ] = None,
    job_class: Annotated[
        JobClass | None, typer.Option("--class", help="New class: `guaranteed`, `preemptible` or `spare`.")
    ] = None,
    pool: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:TIME]", help="Pool to be placed in; `a100:10m` after 10 minutes; repeated; `any`: whichever."
        ),
    ] = None,
    expected: Annotated[
        str | None, typer.Option(metavar="TIME", help="Estimate of the run time, `timeouts.expected`, or `none`.")
    ] = None,
    not_before: Annotated[
        str | None, typer.Option(metavar="TIME", help="Earliest begin: `2h` from now, an ISO time, or `now`.")
    ] = None,
    everything: All = False,
    name: Name = "",
    phase: Phases = None,
    mine: Mine = False,
    project: Projects = None,
    label: Labels = None,
    yes: Yes = False,
    output: Output = Format.TABLE,
) -> int:
    """Change jobs that are submitted.

    The priority changes until they end, all else until they have nodes.

    Examples:
      muster change train --pool h100 --pool a100:10m
      muster change sweep-7 --limit 3h --not-before 2026-12-01T18:00
    """
    asked = JobChange(
        priority=priority,
        run=_limit(limit),
        queue=_limit(queue_limit),
        expected=_limit(expected),
        not_before=None if not_before is None else moment_of(not_before, datetime.now(UTC), "--not-before"),
        job_class=job_class,
        pools=_pools(pool) if pool else None,
    )
    if asked.is_empty:
        raise InvalidJobError(
            "say what to change: --priority, --class, --pool, --limit, --queue-limit, --expected or --not-before; "
            "`muster help change`"
        )
    choice = choice_of(jobs, everything=everything, name=name, phase=phase, mine=mine, project=project, label=label)
    async with session_of(context).client() as client:
        phases = LIVE_PHASES if asked.of_placed_jobs else UNPLACED_PHASES
        found = await chosen(client, choice, phases, "change", yes=yes)
        return await order_each(found, lambda job: client.jobs.change(job, asked), choice, output)


def _limit(text: str | None) -> timedelta | None:
    return WITHOUT_LIMIT if text == _NONE else span_of(text)


def _pools(said: list[str]) -> tuple[PoolChoice, ...]:
    """The pools that the option names, in order; `any` alone: none."""
    if said == [_ANY]:
        return ()
    named = [each.partition(":") for each in said]
    return tuple(PoolChoice(pool=pool, after=span_of(after) if colon else None) for pool, colon, after in named)


def moment_of(text: str, now: datetime, option: str) -> datetime:
    """The time that `now`, `2h` (from now) or an ISO time (local without a zone) names."""
    said = timedelta() if text == "now" else time_of(text)
    if said is None:
        hint = f"{text!r} is neither `now`, nor a time from now such as 2h, nor a time such as 2026-12-01T18:00"
        raise typer.BadParameter(hint, param_hint=option)
    return now + said if isinstance(said, timedelta) else said
