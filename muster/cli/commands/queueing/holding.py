"""Commands that keep jobs out of the queue: hold, unhold, suspend, resume. Each takes jobs by name, or all that fit."""

from collections.abc import Awaitable, Callable, Sequence

import typer

from muster.cli.context import answers, session_of
from muster.cli.job_choice import (
    LIVE_PHASES,
    UNPLACED_PHASES,
    All,
    JobChoice,
    Jobs,
    Name,
    Yes,
    act_on_each,
    choice_of,
    chosen,
)
from muster.cli.options import Labels, Mine, Output, Phases, Projects
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say_lines
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.view import JobView
from muster.domain.visible_text import visible


@answers
async def hold(
    context: typer.Context,
    jobs: Jobs = None,
    *,
    everything: All = False,
    name: Name = "",
    phase: Phases = None,
    mine: Mine = False,
    project: Projects = None,
    label: Labels = None,
    yes: Yes = False,
    output: Output = Format.TABLE,
) -> int:
    """Keep jobs out of the queue until they are released. Jobs that have nodes go on; suspend those instead.

    Who may operate a project and holds the job of somebody else does so as an operator: only operators release it.

    Examples:
      muster hold train
      muster hold --label paper=icml --yes
    """
    choice = choice_of(jobs, everything=everything, name=name, phase=phase, mine=mine, project=project, label=label)
    async with session_of(context).client() as client:
        found = await chosen(client, choice, UNPLACED_PHASES, "hold", yes=yes)
        return await order_each(found, client.jobs.hold, choice, output)


@answers
async def unhold(
    context: typer.Context,
    jobs: Jobs = None,
    *,
    everything: All = False,
    name: Name = "",
    mine: Mine = False,
    project: Projects = None,
    label: Labels = None,
    yes: Yes = False,
    output: Output = Format.TABLE,
) -> int:
    """Release jobs that are held. What an operator holds, only operators release.

    Examples:
      muster unhold train
      muster unhold --all --mine
    """
    choice = choice_of(jobs, everything=everything, name=name, phase=None, mine=mine, project=project, label=label)
    async with session_of(context).client() as client:
        found = await chosen(client, choice, (JobPhase.WAITING,), "unhold", yes=yes)
        return await order_each(found, client.jobs.unhold, choice, output)


@answers
async def suspend(
    context: typer.Context,
    jobs: Jobs = None,
    *,
    everything: All = False,
    name: Name = "",
    phase: Phases = None,
    mine: Mine = False,
    project: Projects = None,
    label: Labels = None,
    yes: Yes = False,
    output: Output = Format.TABLE,
) -> int:
    """Stop jobs until they are resumed. Executions get SIGTERM, and SIGKILL after the grace period.

    A suspended job holds nothing of its nodes. It keeps its place in the order, and its restarts are not counted.

    Examples:
      muster suspend train
      muster suspend --all --phase running --project vision
    """
    choice = choice_of(jobs, everything=everything, name=name, phase=phase, mine=mine, project=project, label=label)
    async with session_of(context).client() as client:
        found = await chosen(client, choice, LIVE_PHASES, "suspend", yes=yes)
        return await order_each(found, client.jobs.suspend, choice, output)


@answers
async def resume(
    context: typer.Context,
    jobs: Jobs = None,
    *,
    everything: All = False,
    name: Name = "",
    mine: Mine = False,
    project: Projects = None,
    label: Labels = None,
    yes: Yes = False,
    output: Output = Format.TABLE,
) -> int:
    """Let suspended jobs go on: their next attempt comes into the queue.

    Examples:
      muster resume train
      muster resume --label paper=icml --yes
    """
    choice = choice_of(jobs, everything=everything, name=name, phase=None, mine=mine, project=project, label=label)
    async with session_of(context).client() as client:
        found = await chosen(client, choice, LIVE_PHASES, "resume", yes=yes)
        return await order_each(found, client.jobs.resume, choice, output)


async def order_each(
    names: Sequence[str], order: Callable[[str], Awaitable[JobView]], choice: JobChoice, output: Format
) -> int:
    """Give an order to each job, and tell the jobs as they are then; the first error decides the exit code."""
    after: list[JobView] = []

    async def act(name: str) -> str:
        job = await order(name)
        after.append(job)
        return f"{job.id} ({visible(job.spec.name)}) {job.phase}: {job.summary}" if output.for_people else ""

    code = await act_on_each(names, act)
    if not output.for_people and after:
        say_lines(text_of(after[0] if len(after) == 1 and not choice.is_search else after, output))
    return code
