"""The commands about nodes: without another word they list."""

from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from muster.cli import trust
from muster.cli.documents import Format, text_of
from muster.cli.options import Output, complete_nodes
from muster.cli.session import answers, screen, session_of


class _Listing(TyperGroup):
    """What is no command of the group is the name of a node to be shown."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own Context has no public name
        """Begin with `show` where no command is named."""
        named = bool(args) and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else ["show", *args])


app = typer.Typer(cls=_Listing, help="List nodes and what is free on them, or show one; let them join, send them away.")
app.add_typer(trust.join_tokens, name="token")
app.command("joined")(trust.enrolled)
app.command("revoke")(trust.revoke_node)


@app.command("show")
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
