"""The commands for volumes that nodes keep: which there are, and removing one."""

from typing import Annotated

import typer

from muster.cli.context import answers, session_of
from muster.cli.help import Group
from muster.cli.options import Output, complete_nodes
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say, say_lines, screen
from muster.domain.data.volume import VolumeId, no_kept_volume
from muster.domain.errors import UnknownNameError
from muster.domain.quantity import moment_text, size_text

volumes = typer.Typer(name="volumes", cls=Group, invoke_without_command=True)


@volumes.callback()
@answers
async def every_volume(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List the volumes that nodes keep between jobs, or remove one.

    Examples:
      muster volumes
      muster volumes list --node node-7
    """
    if context.invoked_subcommand is None:
        await _list(context, "", "", output)


@volumes.command("list")
@answers
async def list_volumes(
    context: typer.Context,
    *,
    node: Annotated[str, typer.Option(help="List only volumes of this node.", autocompletion=complete_nodes)] = "",
    project: Annotated[str, typer.Option(help="List only volumes of this project.")] = "",
    output: Output = Format.TABLE,
) -> None:
    """List the volumes that nodes keep between jobs.

    The size is what lay in a volume when its node looked at it last. Volumes of nodes that are away are those that
    they told of before.

    Examples:
      muster volumes list --project vision
      muster volumes list --node node-7 -o json
    """
    await _list(context, node, project, output)


@volumes.command("remove")
@answers
async def remove_volume(
    context: typer.Context,
    node: Annotated[str, typer.Argument(metavar="NODE", help="Name of the node.", autocompletion=complete_nodes)],
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="Name of the project.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the volume in job files of the project.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Remove one volume from one node, with all that lies in it.

    One that a job uses stays. The next job that names it finds it empty.

    Examples:
      muster volumes remove node-7 vision models
      muster volumes remove node-7 vision models --yes -o json
    """
    async with session_of(context).client() as client:
        if not yes:
            kept = await client.volumes.list(project=project, node=node)
            found = next((each for each in kept if each.name == name), None)
            if found is None:
                raise UnknownNameError(no_kept_volume(node, VolumeId(project, name)))
            what = f"{size_text(found.bytes)}, last used {moment_text(found.used_at)}"
            typer.confirm(f"Remove {name} of {project} from {node} ({what})?", abort=True, err=True)
        removed = await client.volumes.remove(node, project, name)
    if output.for_people:
        say(f"volume {removed.name} of project {removed.project} is removed from {removed.node}")
    else:
        say_lines(text_of(removed, output))


async def _list(context: typer.Context, node: str, project: str, output: Format) -> None:
    async with session_of(context).client() as client:
        found = await client.volumes.list(project=project, node=node)
    if not output.for_people:
        say_lines(text_of(found, output))
        return
    from muster.cli.commands.data.volumes_table import volumes_table

    screen(whole=output is Format.WIDE).print(volumes_table(found))
