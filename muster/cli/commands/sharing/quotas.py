"""Commands about quotas: departments, what they and projects may have, and who waits."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from muster.cli.commands.tokens import show
from muster.cli.context import answers, session_of
from muster.cli.options import Output
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say, say_lines
from muster.domain.errors import InvalidJobError, UnknownNameError
from muster.domain.fleet.quota import QuotaUnit, UnitChange, UnitKind
from muster.domain.fleet.quota_plan import planned, told
from muster.quota_file import changed_terms, units_of

if TYPE_CHECKING:
    from muster.client.client import Client
    from muster.domain.fleet.standing_view import QueueLine

departments = typer.Typer(
    help="""List, make and remove departments, each of several projects.

Examples:
  muster departments
  muster departments add research; muster quota set research gpus=64
""",
    no_args_is_help=True,
)
quota = typer.Typer(
    help="""Show and set what departments and projects may have.

Examples:
  muster quota show
  muster quota set vision gpus=16 limit=32 weight=2
""",
    no_args_is_help=True,
)
PoolOption = Annotated[str, typer.Option(metavar="POOL", help="Only this pool (default: all pools).")]


@departments.command("list")
@answers
async def list_departments(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List departments with their projects.

    Examples:
      muster departments list
      muster departments list -o json
    """
    async with session_of(context).client() as client:
        units = await client.projects.quotas()
    from muster.cli.commands.sharing.quota_tables import departments_table

    show([each for each in units if each.unit.kind is UnitKind.DEPARTMENT], output, departments_table(units))


@departments.command("add")
@answers
async def add_department(
    context: typer.Context, name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the department.")]
) -> None:
    """Make a department.

    Examples:
      muster departments add research
      muster departments add research; muster quota set vision department=research
    """
    unit = QuotaUnit(name=name, kind=UnitKind.DEPARTMENT)
    async with session_of(context).client() as client:
        await _change(client, (UnitChange(before=None, after=unit),))
    say(f"department {name} is there; `muster quota set PROJECT department={name}` puts a project into it")


@departments.command("remove")
@answers
async def remove_department(
    context: typer.Context, name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the department.")]
) -> None:
    """Remove a department that has no projects.

    Examples:
      muster departments remove research
      muster quota set vision department=none; muster departments remove research
    """
    async with session_of(context).client() as client:
        unit = await _unit(client, name, UnitKind.DEPARTMENT)
        await _change(client, (UnitChange(before=unit, after=None),))
    say(f"department {name} is removed")


@quota.command("show")
@answers
async def show_quotas(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[UNIT]", help="Department or project (default: all that you may look at).")
    ] = None,
    *,
    pool: PoolOption = "",
    terms: Annotated[bool, typer.Option("--terms", help="What was set, in place of what comes of it.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Show what departments and projects may have, and what they hold.

    Numbers are GPUs.

    Examples:
      muster quota show
      muster quota show vision --terms
    """
    async with session_of(context).client() as client:
        units = await client.projects.quotas()
    if name is not None:
        units = tuple(each for each in units if each.unit.name == name)
        if not units:
            raise UnknownNameError(f"there is no department or project {name!r}; `muster quota show` shows yours")
    from muster.cli.commands.sharing.quota_tables import standings_table, terms_table

    show(units, output, terms_table([each.unit for each in units]) if terms else standings_table(units, pool))


@quota.command("set")
@answers
async def set_quota(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="UNIT", help="Department or project.")],
    pairs: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY=VALUE...", help="What it may have, like `gpus=16 limit=32 weight=2`; `none` takes it back."
        ),
    ],
    *,
    pool: Annotated[str, typer.Option(metavar="POOL", help="Pool in which it holds (default: all pools).")] = "",
) -> None:
    """Say what a department or a project may have.

    What is not named stays as it is.
    `gpus`, `cpus` and `memory` are the quota, `limit` the most GPUs, `limit.cpus` and `limit.memory` the most of those.
    `department` says where a project belongs. Everything else is in docs/sharing.md.

    Examples:
      muster quota set vision gpus=16 limit=32 weight=2
      muster quota set vision --pool h100 gpus=8
    """
    async with session_of(context).client() as client:
        before = await _unit(client, name)
        after = _changed(before, pairs, pool)
        if after == before:
            say(f"{name} has these terms already")
            return
        change = UnitChange(before=before, after=after)
        await _change(client, (change,))
    say_lines("".join(f"{line}\n" for line in told(change)))


@quota.command("apply")
@answers
async def apply_quotas(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML file with departments and projects; `-`: stdin.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Make the changes without a question.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Give departments and projects the terms of a file, all at once.

    What would change is shown first.
    Who is in the file gets what it says and nothing else; who is not in it stays as it is. A file that changes nothing
    ends well, so that it can be applied again and again.

    Examples:
      muster quota apply quotas.yaml --dry-run
      muster quota apply quotas.yaml --yes -o json
    """
    document = values_of(file)
    async with session_of(context).client() as client:
        known = [each.unit for each in await client.projects.quotas()]
        changes = planned(known, units_of(document, known))
        lines = [line for change in changes for line in told(change)]
        if output.for_people:
            say_lines("".join(f"{line}\n" for line in lines) or "nothing changes\n")
        done = bool(changes) and not dry_run and (yes or _agreed(len(changes)))
        warnings = await _change(client, changes) if done else ()
    if not output.for_people:
        say_lines(text_of({"changes": lines, "applied": done, "warnings": list(warnings)}, output))


@answers
async def queue(
    context: typer.Context,
    *,
    pool: PoolOption = "",
    project: Annotated[str, typer.Option(metavar="PROJECT", help="Only this project (default: all).")] = "",
    output: Output = Format.TABLE,
) -> None:
    """Show who waits, in the order in which they are tried, and why.

    TIER is what a job would use: its project's quota, its share of what is left over, or what is borrowed from others.

    Examples:
      muster queue
      muster queue --project vision -o json
    """
    lines: list[QueueLine] = []
    async with session_of(context).client() as client:
        page = await client.projects.queue(project=project, pool=pool)
        lines += page.lines
        while page.next_page:
            page = await client.projects.queue(project=project, pool=pool, page=page.next_page)
            lines += page.lines
    from muster.cli.commands.sharing.quota_tables import queue_table

    show(lines, output, queue_table(lines))


def _changed(unit: QuotaUnit, pairs: Sequence[str], pool: str) -> QuotaUnit:
    """The unit with what pairs say; `department` is one of them."""
    terms = [pair for pair in pairs if not pair.startswith("department=")]
    for pair in pairs:
        if pair.startswith("department="):
            if unit.kind is UnitKind.DEPARTMENT:
                raise InvalidJobError(f"{unit.name} is a department, and departments cannot be in departments")
            department = pair.partition("=")[2]
            unit = replace(unit, department="" if department == "none" else department)
    changed = unit.terms.with_pool(pool, changed_terms(unit.terms.of_pool(pool), terms))
    for fault in changed.faults():
        raise InvalidJobError(f"{unit.name}: {fault}")
    return replace(unit, terms=changed)


async def _unit(client: "Client", name: str, kind: UnitKind | None = None) -> QuotaUnit:
    for each in await client.projects.quotas():
        if each.unit.name == name and kind in {None, each.unit.kind}:
            return each.unit
    raise UnknownNameError(f"there is no {kind or 'department or project'} {name!r}; `muster quota show` shows all")


async def _change(client: "Client", changes: Sequence[UnitChange]) -> Sequence[str]:
    """Make changes, and tell what cannot be kept of them."""
    warnings = await client.projects.set_quotas(changes)
    for warning in warnings:
        say(f"warning: {warning}", err=True)
    return warnings


def _agreed(count: int) -> bool:
    if not sys.stdin.isatty():
        raise InvalidJobError("nothing was changed, as nobody could be asked; add --yes")
    say(f"change {count} of them? [y/N] ", err=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def values_of(file: Path) -> Any:  # noqa: ANN401 - what a file says is checked by whom it is for
    """What a file says, with every value as text; raises InvalidJobError for one that cannot be read."""
    from muster.jobfile.document import UnreadableError, read, unfold

    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidJobError(f"{file} cannot be read: {error}") from None
    try:
        found = read(text)
    except UnreadableError as error:
        raise InvalidJobError(f"{file}:{error.at.line}: {error}") from None
    for again in found.repeated:
        raise InvalidJobError(f"{file}:{again.at.line}: {again.path[-1]} stands there for the second time")
    root = found.root
    return {} if root is None else unfold(root, lambda scalar: scalar.text if scalar.value is not None else None)
