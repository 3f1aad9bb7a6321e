"""Commands about pools: list, show, set, remove."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from muster.cli.commands.tokens import parsed_span, show
from muster.cli.context import answers, session_of
from muster.cli.options import Output, labels_of
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say, say_lines, screen
from muster.domain.errors import UnknownNameError
from muster.domain.fleet.pool import Pool, PortionRule
from muster.domain.quoting import nearest, quote

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muster.domain.fleet.standing_view import PoolView

pools = typer.Typer(invoke_without_command=True)

_NONE = "none"
"""How something is taken back."""


@pools.callback()
@answers
async def list_pools(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List pools with their nodes.

    Each node is in exactly one pool.

    Examples:
      muster pools
      muster pools -o json
    """
    if context.invoked_subcommand is not None:
        return
    async with session_of(context).client() as client:
        found = await client.pools.list()
    from muster.cli.commands.sharing.pool_tables import pools_table

    show(found, output, pools_table(found))


@pools.command("show")
@answers
async def show_pool(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the pool.")],
    *,
    output: Output = Format.TABLE,
) -> None:
    """Show one pool: its labels, its nodes, and what holds there.

    Examples:
      muster pools show h100
      muster pools show h100 -o json
    """
    async with session_of(context).client() as client:
        view = _named(await client.pools.list(), name)
    if not output.for_people:
        say_lines(text_of(view, output))
        return
    from muster.cli.commands.sharing.pool_tables import pool_details

    screen(whole=output is Format.WIDE).print(pool_details(view))


@pools.command("set")
@answers
async def set_pool(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the pool: lower-case letters, digits and hyphens.")],
    *,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Label that all its nodes carry; may be repeated. `none`: the label pool=NAME."
        ),
    ] = None,
    longest_run: Annotated[
        str | None, typer.Option(metavar="TIME", help="Longest run time of its jobs, like `3d`, or `none`.")
    ] = None,
    level: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Label that says where its nodes are, the coarsest first; may be repeated. `none`: the usual names.",
        ),
    ] = None,
    enforce: Annotated[
        PortionRule | None,
        typer.Option(help="Whether jobs that use more GPU memory than their portion are stopped."),
    ] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="Also if no node carries these labels yet.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Say which nodes are in a pool, and what holds there.

    What is not named stays as it is; labels and levels that are named replace those of before.
    A node that several pools take is in the first of them by name.

    Examples:
      muster pools set h100 --label gpu=h100
      muster pools set debug --longest-run 2h
    """
    async with session_of(context).client() as client:
        known = {view.pool.name: view.pool for view in await client.pools.list()}
        pool = known.get(name, Pool(name=name))
        if label is not None:
            pool = replace(pool, selector={} if label == [_NONE] else labels_of(label, "--label"))
        if longest_run is not None:
            pool = replace(pool, longest_run=None if longest_run == _NONE else parsed_span(longest_run))
        if level is not None:
            pool = replace(pool, levels=() if level == [_NONE] else tuple(level))
        if enforce is not None:
            pool = replace(pool, enforce=enforce)
        warnings = await client.pools.put(pool, anyway=anyway)
    _tell(warnings)
    if output.for_people:
        say(f"pool {name} is set")
    else:
        say_lines(text_of({"pool": pool, "warnings": list(warnings)}, output))


@pools.command("remove")
@answers
async def remove_pool(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the pool.")],
    *,
    output: Output = Format.TABLE,
) -> None:
    """Take back what was set for a pool; its nodes are in another one then.

    Nodes whose label `pool` has its name stay in it.

    Examples:
      muster pools remove h100
      muster pools remove debug -o json
    """
    async with session_of(context).client() as client:
        warnings = await client.pools.remove(name)
    _tell(warnings)
    if output.for_people:
        say(f"pool {name} is removed")
    else:
        say_lines(text_of({"pool": name, "warnings": list(warnings)}, output))


def _tell(warnings: "Sequence[str]") -> None:
    for warning in warnings:
        say(f"warning: {warning}", err=True)


def _named(views: "Sequence[PoolView]", name: str) -> "PoolView":
    """The pool of this name; raises UnknownNameError with the one that was probably meant."""
    found = {view.pool.name: view for view in views}
    if name not in found:
        near = nearest(name, found)
        meant = f"did you mean {quote(near)}?" if near is not None else "`muster pools` lists them"
        raise UnknownNameError(f"there is no pool {quote(name)}; {meant}")
    return found[name]
