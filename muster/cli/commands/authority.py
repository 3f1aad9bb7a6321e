"""Commands about the fleet's authority: which ones count, and how one gives way to the next."""

from typing import Annotated

import typer

from muster.cli.context import answers, session_of
from muster.cli.options import Output
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say_lines, screen
from muster.domain.fleet.access import AuthorityStatus

_NAMED = 10
"""Nodes of each kind that are named."""

authority = typer.Typer(
    help="""Show or change the fleet's authority, which signs all certificates.

Examples:
  muster authority show
  muster authority rotate
""",
    no_args_is_help=True,
)


@authority.command()
@answers
async def show(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """Show which authorities are valid, and how far a change is.

    Examples:
      muster authority show
      muster authority show -o json
    """
    async with session_of(context).client() as client:
        found = await client.authority.show()
    _tell(found, output)


@authority.command()
@answers
async def rotate(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """Begin to change the authority.

    Nodes move to the new authority by themselves, and jobs go on. `muster authority finish` ends the change.

    Examples:
      muster authority rotate
      muster authority rotate -o json
    """
    async with session_of(context).client() as client:
        found = await client.authority.rotate()
    _tell(found, output)


@authority.command()
@answers
async def finish(
    context: typer.Context,
    *,
    force: Annotated[
        bool,
        typer.Option("--force", help="End it even if nodes have not moved; those must join again with a new token."),
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """End the change: the former authority is no longer valid.

    The coordinator shows a certificate of the new authority from then on.

    Examples:
      muster authority finish
      muster authority finish --force
    """
    async with session_of(context).client() as client:
        found = await client.authority.finish(force=force)
    _tell(found, output)


def _tell(status: AuthorityStatus, output: Format) -> None:
    if not output.for_people:
        say_lines(text_of(status, output))
        return
    from muster.cli.output.tables import facts
    from muster.cli.output.units import time_text

    screen().print(
        facts(
            (
                ("stage", status.stage),
                *((f"signs {each.signs}", f"sha256:{each.fingerprint}") for each in status.authorities),
                ("begun", time_text(status.begun_at)),
                ("nodes moved", str(status.moved) if status.begun_at else ""),
                ("still to move", _names(status.waiting)),
                ("away", _names(status.away)),
            )
        )
    )


def _names(nodes: tuple[str, ...]) -> str:
    more = f", … ({len(nodes)})" if len(nodes) > _NAMED else ""
    return ", ".join(nodes[:_NAMED]) + more
