"""Commands for nodes that shall take nothing new: `nodes cordon`, `nodes uncordon`, `nodes drain`."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from muster.cli.context import answers, session_of
from muster.cli.options import Output, complete_nodes
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import print_dim, say, say_lines
from muster.domain.errors import InvalidJobError, UnavailableError
from muster.domain.fleet.node import NodeView

if TYPE_CHECKING:
    from muster.client.client import Client

_LOOK_AGAIN = 1.0
"""Seconds between looks at a node that is drained."""
_SHOWN = 5
"""How many executions a message names."""

NodeNames: TypeAlias = Annotated[
    list[str], typer.Argument(metavar="NODE...", help="Names of nodes.", autocompletion=complete_nodes)
]
Reason: TypeAlias = Annotated[str, typer.Option(metavar="TEXT", help="Reason, which `muster nodes` shows.")]


@answers
async def cordon(
    context: typer.Context, names: NodeNames, *, reason: Reason = "", output: Output = Format.TABLE
) -> None:
    """Place nothing new on nodes; what runs there goes on.

    Examples:
      muster nodes cordon node-7 --reason "a fan is loud"
      muster nodes cordon node-7 node-8
    """
    async with session_of(context).client() as client:
        await _known(client, names)
        found = [await client.nodes.cordon(name, reason=reason) for name in names]
    _tell(found, {node.name: f"{node.name} is cordoned; {_left(node)}" for node in found}, output)


@answers
async def uncordon(context: typer.Context, names: NodeNames, *, output: Output = Format.TABLE) -> None:
    """Let nodes take new work again.

    Examples:
      muster nodes uncordon node-7
      muster nodes uncordon node-7 node-8
    """
    async with session_of(context).client() as client:
        await _known(client, names)
        found = [await client.nodes.uncordon(name) for name in names]
    _tell(found, {node.name: f"{node.name} takes jobs" for node in found}, output)


@answers
async def drain(
    context: typer.Context,
    names: NodeNames,
    *,
    restart: Annotated[
        bool,
        typer.Option(
            "--restart",
            help="Restart the jobs that run there elsewhere, at once; their restart limits do not count it (default: "
            "they run to their end).",
        ),
    ] = False,
    reason: Reason = "",
    within: Annotated[
        str | None, typer.Option("--timeout", metavar="TIME", help="Longest wait: `90s`, `10m` (default: no limit).")
    ] = None,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Return at once, without waiting until nothing runs there.")
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """Cordon nodes and wait until nothing runs there.

    Ctrl-C ends the wait and leaves the nodes cordoned.

    Examples:
      muster nodes drain node-7 --reason "new disk"
      muster nodes drain node-7 --restart --timeout 10m
    """
    limit = _limit(within)
    async with session_of(context).client() as client:
        await _known(client, names)
        found = [await client.nodes.cordon(name, reason=reason, restart_jobs=restart) for name in names]
        if no_wait:
            _tell(found, {node.name: f"{node.name} is cordoned; {_left(node)}" for node in found}, output)
            return
        try:
            async with asyncio.timeout(limit):
                found = [await _drained(client, node) for node in found]
        except TimeoutError:
            left = [node for name in names if (node := await client.nodes.get(name)).executions]
            told = "; ".join(f"{node.name}: {_left(node)}" for node in left)
            raise UnavailableError(f"not drained within {within} (the nodes stay cordoned): {told}") from None
    _tell(found, {node.name: f"{node.name} is drained" for node in found}, output)


@answers
async def label(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NODE", help="Name of the node.", autocompletion=complete_nodes)],
    labels: Annotated[
        list[str], typer.Argument(metavar="KEY=VALUE|KEY-...", help="Labels to give, and names of labels to take away.")
    ],
) -> None:
    """Give a node labels, or take some away.

    Jobs choose nodes by labels (`node_labels`). What runs on the node goes on.

    Examples:
      muster nodes label node-7 rack=a7 disk=nvme
      muster nodes label node-7 pool-
    """
    from muster.bootstrap.inventory import parse_label

    given = dict(map(parse_label, (word for word in labels if "=" in word)))
    removed = [word.removesuffix("-") for word in labels if "=" not in word]
    for word in labels:
        if "=" not in word and (not word.endswith("-") or word == "-"):
            raise InvalidJobError(f"{word!r} is neither a label like rack=a7 nor one to take away like rack-")
    async with session_of(context).client() as client:
        found, changed = await client.nodes.label(name, given, removed)
    told = ", ".join(f"{key}={value}" for key, value in sorted(found.items())) or "no labels"
    say(f"{name}: {told}{'' if changed else ' (as before)'}")


async def _known(client: "Client", names: Sequence[str]) -> None:
    """Raise UnknownNameError before anything is done to any of them."""
    for name in names:
        await client.nodes.get(name)


async def _drained(client: "Client", node: NodeView) -> NodeView:
    """The node once it holds nothing; says on stderr what it waits for."""
    told = -1
    while node.executions:
        if len(node.executions) != told:
            told = len(node.executions)
            print_dim(f"{node.name}: {_left(node)}")
        await asyncio.sleep(_LOOK_AGAIN)
        node = await client.nodes.get(node.name)
    return node


def _left(node: NodeView) -> str:
    count = len(node.executions)
    if not count:
        return "nothing runs there"
    names = ", ".join(node.executions[:_SHOWN]) + (", …" if count > _SHOWN else "")
    return f"{count} {'execution runs' if count == 1 else 'executions run'} there ({names})"


def _tell(found: Sequence[NodeView], sentences: Mapping[str, str], output: Format) -> None:
    if not output.for_people:
        say_lines(text_of(found, output))
        return
    for node in found:
        say(sentences[node.name])


def _limit(within: str | None) -> float | None:
    from muster.jobfile.quantity import parse_duration

    if within is None:
        return None
    limit = parse_duration(within).total_seconds()
    if limit <= 0:
        raise InvalidJobError(f"--timeout {within} is no time to wait")
    return limit
