"""The commands about nodes: `nodes`, `nodes NODE`, `nodes remove`, and how they join."""

from datetime import UTC, datetime
from typing import Annotated, Any, TypeAlias

import typer

from muster.cli.commands import trust
from muster.cli.commands.nodes import bootstrap, maintenance, taints
from muster.cli.context import answers, session_of
from muster.cli.help import Group
from muster.cli.options import Output, complete_nodes
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say_lines, screen
from muster.domain.errors import ConflictError, InvalidJobError
from muster.domain.fleet.node import NodeState, NodeView
from muster.domain.quantity import counted
from muster.domain.visible_text import visible

_SHOWN = 5
"""How many executions a question names."""


class _Nodes(Group):
    """A group in which a word that is no command is the name of a node to show."""

    # Click is typer's own affair (some versions bring their own), so its types are not named here.

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - values of click, which typer hides
        """`NODE` is short for `show NODE`."""
        known = self.get_command(ctx, args[0]) is not None
        return super().resolve_command(ctx, args if known else ["show", *args])

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:  # noqa: ANN401 - values of click, which typer hides
        """Commands, and names of nodes."""
        (name,) = (each for each in self.commands["show"].params if each.name == "node")
        return [*super().shell_complete(ctx, incomplete), *name.shell_complete(ctx, incomplete)]


nodes = typer.Typer(name="nodes", cls=_Nodes, invoke_without_command=True, subcommand_metavar="[NODE | COMMAND ...]")

NodeName: TypeAlias = Annotated[
    str, typer.Argument(metavar="NODE", help="Name of the node.", autocompletion=complete_nodes)
]


@nodes.callback()
@answers
async def every_node(
    context: typer.Context,
    *,
    state: Annotated[
        list[NodeState] | None, typer.Option(help="List only nodes in this state; may be repeated.")
    ] = None,
    cordoned: Annotated[
        bool | None, typer.Option("--cordoned/--not-cordoned", help="List only nodes that are cordoned, or are not.")
    ] = None,
    pool: Annotated[str | None, typer.Option(help="List only nodes of this pool.")] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY[=VALUE]", help="List only nodes with this label; may be repeated."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print names alone, one on each line.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """List nodes and what is free on them, show one, or make machines nodes.

    A machine becomes a node with `add` (or joins with a token of `token create`); `cordon` keeps new work away and
    `uncordon` takes it back, `drain` also waits until it is empty, `upgrade` gives it another version. `remove` gives
    up a node that is gone; `revoke` shuts one out that must not come back. `joined` lists who has joined with which
    token.

    Examples:
      muster nodes
      muster nodes --pool h100 --not-cordoned -o wide
    """
    if context.invoked_subcommand is not None:
        return
    labels = [
        (name, value if equals else None) for name, equals, value in (each.partition("=") for each in label or ())
    ]
    async with session_of(context).client() as client:
        found = [
            node
            for node in await client.nodes.list()
            if (not state or node.state in state)
            and (cordoned is None or (node.cordon is not None) is cordoned)
            and (pool is None or node.pool == pool)
            and all(
                name in node.inventory.labels and value in {None, node.inventory.labels[name]} for name, value in labels
            )
        ]
    if quiet:
        say_lines("".join(f"{node.name}\n" for node in found))
        return
    if not output.for_people:
        say_lines(text_of(found, output))
        return
    from muster.cli.output.nodes import nodes_table

    wide = output is Format.WIDE
    screen(whole=wide).print(nodes_table(found, datetime.now(UTC), wide=wide))


@nodes.command()
@answers
async def show(context: typer.Context, node: NodeName, *, output: Output = Format.TABLE) -> None:
    """Show one node with its GPUs; `muster nodes NODE` does the same.

    Examples:
      muster nodes node-7
      muster nodes show node-7 -o json
    """
    form = _form(context, output)
    async with session_of(context).client() as client:
        found = await client.nodes.get(node)
    if not form.for_people:
        say_lines(text_of(found, form))
        return
    from muster.cli.output.nodes import node_details

    screen().print(node_details(found, datetime.now(UTC)))


@nodes.command()
@answers
async def remove(
    context: typer.Context,
    node: NodeName,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    ssh: Annotated[
        str | None,
        typer.Option(
            metavar="[USER@]HOST[:PORT]", help="Machine on which Muster is uninstalled first; its agent may be running."
        ),
    ] = None,
    purge: Annotated[
        bool, typer.Option("--purge", help="Also remove state, settings, users and containers, with --ssh.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Uninstall even while executions run there, with --ssh.")
    ] = False,
    jump: bootstrap.Jump = None,
    key: bootstrap.Key = None,
    accept_host_key: bootstrap.Accepted = None,
    output: Output = Format.TABLE,
) -> None:
    """Give up a node that will not come back.

    Nothing may run there any more: what ran there counts as ended. With --ssh Muster is uninstalled there first.

    Examples:
      muster nodes remove node-7
      muster nodes remove node-7 --ssh root@node-7 --purge
    """
    form = _form(context, output)
    if ssh is None and (purge or force):
        raise InvalidJobError("--purge and --force are about the computer of the node; say where it is with --ssh")
    async with session_of(context).client() as client:
        if ssh is not None:

            def ask(found: NodeView | None) -> None:
                if not yes:
                    typer.confirm(_question(found) if found else f"Uninstall at {ssh}?", abort=True, err=True)

            said = await bootstrap.remove_by_ssh(
                client, node, ssh, jump=jump, key=key, accepted=accept_host_key or (), purge=purge, force=force, ask=ask
            )
            say_lines(text_of({"node": node, "removed": True}, form) if not form.for_people else f"{said}\n")
            return
        found = await client.nodes.get(node)
        if found.state is NodeState.READY:
            raise ConflictError(f"node {node} is connected; stop its agent first (what runs there would run on)")
        if not yes:
            typer.confirm(_question(found), abort=True, err=True)
        removed = await client.nodes.remove(node)
    say_lines(text_of(removed, form) if not form.for_people else f"{removed.name} removed\n")


nodes.command()(bootstrap.add)
nodes.command()(bootstrap.check)
nodes.command()(bootstrap.upgrade)
nodes.command()(maintenance.cordon)
nodes.command()(maintenance.uncordon)
nodes.command()(maintenance.drain)
nodes.command()(maintenance.label)
nodes.command()(taints.taint)
nodes.add_typer(trust.join_tokens, name="token")
nodes.command("joined")(trust.enrolled)
nodes.command("revoke")(trust.revoke_node)


def _form(context: typer.Context, said: Format) -> Format:
    """How to answer, wherever among the words `-o` stands."""
    above = context.parent.params.get("output") if context.parent is not None else None
    # Whether it comes as a word or as a value is up to typer's version.
    return Format(above) if said is Format.TABLE and isinstance(above, str) else said


def _question(node: NodeView) -> str:
    count, names = len(node.executions), visible(", ".join(node.executions[:_SHOWN]))
    if not count:
        return f"Nothing runs on {visible(node.name)} as far as is known. Remove it?"
    more = ", …" if count > _SHOWN else ""
    return (
        f"{counted(count, 'execution')} on {visible(node.name)} ({names}{more}) "
        "will count as ended, and jobs with restarts begin anew elsewhere. If user code still runs there, it runs "
        "twice. Remove it?"
    )
