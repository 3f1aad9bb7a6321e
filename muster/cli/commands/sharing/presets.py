"""Commands for presets: named fragments of job files, of projects and of the fleet."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from muster.cli.context import answers, session_of
from muster.cli.job_files import read_text_file
from muster.cli.options import Output
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say, say_lines, screen
from muster.domain.fleet.access import EVERYWHERE
from muster.domain.fleet.policies.preset import Preset, PresetKind
from muster.jobfile.presets import load_preset

if TYPE_CHECKING:
    from muster.client.client import Client

presets = typer.Typer(
    help="""Keep fragments of job files by name, and see what they say.

Examples:
  muster presets
  muster presets put environment pytorch-2.9 --file image.yaml
""",
    no_args_is_help=True,
)

ProjectOf: TypeAlias = Annotated[
    str,
    typer.Option(
        "--project",
        metavar="PROJECT",
        envvar="MUSTER_PROJECT",
        help="Project of the preset (default: your only one); `*`: the fleet.",
    ),
]
Kind: TypeAlias = Annotated[PresetKind, typer.Argument(metavar="KIND", help="Kind of the preset.")]
Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="Name of the preset.")]


@presets.command("list")
@answers
async def list_presets(context: typer.Context, *, project: ProjectOf = "", output: Output = Format.TABLE) -> None:
    """List the presets of a project and of the fleet.

    Examples:
      muster presets list
      muster presets list --project vision -o wide
    """
    async with session_of(context).client() as client:
        found = await client.presets.list(project)
    if output.for_people:
        _show(found, output)
    else:
        say_lines(text_of(found, output))


@presets.command("show")
@answers
async def show_preset(
    context: typer.Context,
    kind: Kind,
    name: Annotated[str, typer.Argument(metavar="NAME[@N]", help="Name of the preset, and of which version.")],
    *,
    project: ProjectOf = "",
    output: Output = Format.TABLE,
) -> None:
    """Show what a preset says, as a file that `put` takes.

    Examples:
      muster presets show environment pytorch-2.9
      muster presets show template ddp@3 --project vision
    """
    name, version = _versioned(name)
    async with session_of(context).client() as client:
        found = await client.presets.get(kind, name, version=version, project=project)
    if output.for_people:
        title = f": {found.title}" if found.title else ""
        say_lines(f"# {found.id}, version {found.version}, of {found.id.source}{title}\n")
        say_lines(text_of(found.document, Format.YAML))
    else:
        say_lines(text_of(found, output))


@presets.command("put")
@answers
async def put_preset(
    context: typer.Context,
    kind: Kind,
    name: Name,
    *,
    file: Annotated[
        Path, typer.Option("--file", "-f", metavar="FILE", help="YAML file with keys of a job file; `-`: input.")
    ],
    title: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What it is, for people who choose one (default: as before).")
    ] = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="What is new in this version.")] = "",
    project: ProjectOf = "",
    output: Output = Format.TABLE,
) -> None:
    """Keep the next version of a preset.

    Jobs that were made with another version stay what they are.

    Examples:
      muster presets put environment pytorch-2.9 --file image.yaml --title "PyTorch 2.9"
      muster presets put resources h100-node --file node.yaml --project '*'
    """
    text, source, _ = read_text_file(file)
    document = load_preset(text, source, kind)
    async with session_of(context).client() as client:
        before = await _before(client, project, kind, name)
        said = title if title is not None else before.title if before is not None else ""
        wish = Preset(project=project, kind=kind, name=name, document=document, title=said, note=note)
        made = await client.presets.put(wish)
    if output.for_people:
        same = before is not None and (before.id, before.version) == (made.id, made.version)
        state = "says that already" if same else "is kept"
        say(f"{made.id} of {made.id.source} {state}: version {made.version}")
    else:
        say_lines(text_of(made, output))


@presets.command("history")
@answers
async def show_history(
    context: typer.Context, kind: Kind, name: Name, *, project: ProjectOf = "", output: Output = Format.TABLE
) -> None:
    """List all versions of a preset, the newest first.

    Examples:
      muster presets history environment pytorch-2.9
      muster presets history template ddp --project vision -o yaml
    """
    async with session_of(context).client() as client:
        found = await client.presets.history(kind, name, project=project)
    if output.for_people:
        _show_versions(found, output)
    else:
        say_lines(text_of(found, output))


@presets.command("remove")
@answers
async def remove_preset(context: typer.Context, kind: Kind, name: Name, *, project: ProjectOf = "") -> None:
    """Remove all versions of a preset.

    Jobs that were made with it stay what they are.

    Examples:
      muster presets remove template ddp
      muster presets remove resources h100-node --project '*'
    """
    async with session_of(context).client() as client:
        await client.presets.remove(kind, name, project=project)
    say(f"{kind} {name} is forgotten")


async def _before(client: "Client", project: str, kind: PresetKind, name: str) -> Preset | None:
    """The newest version of a preset that is there already, of this project and no other."""
    for each in await client.presets.list(project):
        if (each.kind, each.name) == (kind, name) and (project == EVERYWHERE) == (each.project == EVERYWHERE):
            return each
    return None


def _versioned(name: str) -> tuple[str, int]:
    name, at, number = name.partition("@")
    if at and not (number.isascii() and number.isdecimal() and int(number)):
        raise typer.BadParameter(f"{number!r} is no number of a version; write it like pytorch-2.9@4")
    return name, int(number or 0)


def _show(found: Sequence[Preset], output: Format) -> None:
    from muster.cli.output.plain.columns import Column
    from muster.cli.output.tables import listing

    rows = (
        (
            each.kind,
            each.name,
            str(each.version),
            each.project,
            ", ".join(each.document),
            each.title or "-",
            _made(each),
        )
        for each in found
    )
    columns = (
        "KIND",
        "NAME",
        "VERSION",
        "PROJECT",
        Column("KEYS", least=12),
        Column("TITLE", least=12),
        Column("MADE", spare=1),
    )
    screen(whole=output is Format.WIDE).print(listing(columns, rows))


def _show_versions(found: Sequence[Preset], output: Format) -> None:
    from muster.cli.output.plain.columns import Column
    from muster.cli.output.tables import listing

    rows = ((str(each.version), _made(each), ", ".join(each.document), each.note or "-") for each in found)
    columns = ("VERSION", "MADE", Column("KEYS", least=12), Column("NOTE", least=12))
    screen(whole=output is Format.WIDE).print(listing(columns, rows))


def _made(preset: Preset) -> str:
    from muster.cli.output.units import time_text

    return f"{time_text(preset.made_at)} by {preset.made_by or '-'}" if preset.made_at is not None else "-"
