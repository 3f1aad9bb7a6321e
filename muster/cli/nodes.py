"""The command nodes."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from muster.cli.documents import Format, text_of
from muster.cli.options import Output, complete_nodes
from muster.cli.session import answers, screen, session_of


@answers
async def nodes(
    context: typer.Context,
    node: Annotated[
        str | None,
        typer.Argument(metavar="[NODE]", help="Show all of this one.", autocompletion=complete_nodes),
    ] = None,
    *,
    output: Output = Format.TABLE,
) -> None:
    """List nodes and what is free on them, or show one."""
    async with session_of(context).client() as client:
        found = await client.nodes() if node is None else await client.node(node)
    if output is not Format.TABLE:
        print(text_of(found, output), end="")
        return
    from muster.cli.render_nodes import node_details, nodes_table  # noqa: PLC0415

    screen().print(nodes_table(found) if isinstance(found, tuple) else node_details(found, datetime.now(UTC)))
