"""The commands for images that agents have pulled onto their nodes: which there are, clearing and pulling some."""

import asyncio
from typing import Annotated

import typer

from muster.cli.context import answers, session_of
from muster.cli.help import Group
from muster.cli.options import Output, complete_nodes
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import clear_status, draw_status, say, say_lines, screen
from muster.domain.data.kept.image import ClearOutcome
from muster.domain.data.kept.pull import PullStep, PullView
from muster.domain.errors import ConflictError
from muster.domain.quantity import counted

images = typer.Typer(name="images", cls=Group, invoke_without_command=True)

_PULL_LOOK = 0.2
"""Seconds between two looks at how far a pull is, at the least."""

MOST_DRAWN = 10
"""Nodes whose pull is drawn in the terminal."""

_REFUSED = frozenset({ClearOutcome.IN_USE, ClearOutcome.UNKNOWN, ClearOutcome.FAILED, ClearOutcome.LATER})


@images.callback()
@answers
async def every_image(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List images that agents have pulled, clear some, or pull one.

    Examples:
      muster images
      muster images clear node-7
    """
    if context.invoked_subcommand is None:
        await _list(context, "", output)


@images.command("list")
@answers
async def list_images(
    context: typer.Context,
    node: Annotated[
        str, typer.Argument(metavar="[NODE]", help="Name of the node (default: all).", autocompletion=complete_nodes)
    ] = "",
    *,
    output: Output = Format.TABLE,
) -> None:
    """List the images that agents have pulled onto nodes.

    What people have pulled, built or loaded there is not listed, as agents leave that alone. Images of nodes that
    are away are those that they told of before.

    Examples:
      muster images list node-7
      muster images list -o json
    """
    await _list(context, node, output)


@images.command("clear")
@answers
async def clear_images(
    context: typer.Context,
    node: Annotated[str, typer.Argument(metavar="NODE", help="Name of the node.", autocompletion=complete_nodes)],
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[IMAGE]...", help="Names or ids of images (default: all unused).")
    ] = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Take images away from a node that its agent has pulled.

    One that a container uses stays, and one with which an execution is being prepared. An image that has gone is
    pulled again when a job needs it. Where a named image stays, the command fails.

    Examples:
      muster images clear node-7
      muster images clear node-7 registry.example.com/team/train:1.4 --yes
    """
    wanted = names or []
    async with session_of(context).client() as client:
        if not yes:
            what = ", ".join(wanted) or "all images that nobody uses"
            typer.confirm(f"Clear {what} from {node}?", abort=True, err=True)
        fates = await client.images.clear(node, wanted)
    if not output.for_people:
        say_lines(text_of(fates, output))
    elif not fates:
        say(f"the agent of {node} has pulled no images")
    else:
        from muster.cli.commands.data.images_table import fates_table

        screen(whole=output is Format.WIDE).print(fates_table(fates))
    stay = [each for each in fates if each.outcome in _REFUSED]
    if wanted and stay:
        raise ConflictError(f"{counted(len(stay), 'image')} of {len(fates)} not cleared from {node}")


@images.command("pull")
@answers
async def pull_image(
    context: typer.Context,
    image: Annotated[str, typer.Argument(metavar="IMAGE", help="Name of the image, as in a job file.")],
    *,
    node: Annotated[
        list[str] | None,
        typer.Option(help="Node that pulls; may be repeated (default: all).", autocompletion=complete_nodes),
    ] = None,
    pool: Annotated[str, typer.Option(metavar="POOL", help="Pool whose nodes pull (default: all pools).")] = "",
    project: Annotated[
        str,
        typer.Option(
            metavar="PROJECT",
            envvar="MUSTER_PROJECT",
            help="Project with the registry's credentials (default: your only one).",
        ),
    ] = "",
    output: Output = Format.TABLE,
) -> None:
    """Have nodes pull an image before a job needs it.

    The command waits until all have it or cannot get it, and fails where one of them cannot. After Ctrl-C the nodes
    go on pulling.

    Examples:
      muster images pull registry.example.com/team/train:1.4 --pool h100
      muster images pull busybox:1.36 --node node-7 --node node-8 -o json
    """
    async with session_of(context).client() as client:
        pull = await client.images.pull(image, nodes=node or (), pool=pool, project=project)
        try:
            while not pull.is_over:
                _draw(pull)
                await asyncio.sleep(_PULL_LOOK)
                pull = await client.images.pulled(pull.id, revision=pull.revision)
        except asyncio.CancelledError:
            clear_status()
            say("the nodes go on pulling; `muster images list` shows what they have", err=True)
            raise
        finally:
            clear_status()
    if output.for_people:
        from muster.cli.commands.data.images_table import pull_table

        screen(whole=output is Format.WIDE).print(pull_table(pull))
    else:
        say_lines(text_of(pull, output))
    failed = [each for each in pull.nodes if each.step is PullStep.FAILED]
    if failed:
        raise ConflictError(f"{counted(len(failed), 'node')} of {len(pull.nodes)} did not get {image}")


def _draw(pull: PullView) -> None:
    """Say in the last lines of the terminal how far a pull is."""
    there = sum(each.step is PullStep.PULLED for each in pull.nodes)
    busy = [f"  {each.node}: {each.step} {each.doing}".rstrip() for each in pull.nodes if each.step is PullStep.PULLING]
    more = [f"  and {len(busy) - MOST_DRAWN} more"] if len(busy) > MOST_DRAWN else []
    draw_status(f"{pull.image} is on {there} of {counted(len(pull.nodes), 'node')}", *busy[:MOST_DRAWN], *more)


async def _list(context: typer.Context, node: str, output: Format) -> None:
    async with session_of(context).client() as client:
        found = await client.images.list(node=node)
    if not output.for_people:
        say_lines(text_of(found, output))
        return
    from muster.cli.commands.data.images_table import images_table

    screen(whole=output is Format.WIDE).print(images_table(found))
