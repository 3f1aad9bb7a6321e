"""The command for taints of nodes: `nodes taint`."""

import re
from datetime import timedelta
from typing import Annotated

import typer

from muster.cli.context import answers, session_of
from muster.cli.options import Output, complete_nodes
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say, say_lines
from muster.domain.errors import InvalidJobError
from muster.domain.jobs.job import NODE_LABEL
from muster.domain.jobs.placing.taint import Taint, TaintName
from muster.domain.jobs.placing.toleration import TaintEffect
from muster.domain.quoting import nearest


@answers
async def taint(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NODE", help="Name of the node.", autocompletion=complete_nodes)],
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY[=VALUE]:EFFECT|KEY[:EFFECT]-...", help="Taints to give, and names of taints to take away."
        ),
    ],
    *,
    after: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Time for which what runs there goes on in spite of NoExecute: `60s`, `1h`."),
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """Give a node taints, which keep jobs off it, or take some away.

    NoSchedule keeps jobs off the node that do not tolerate the taint (`tolerations`). PreferNoSchedule keeps them off
    while other nodes have room. NoExecute also has what runs there begin anew elsewhere.

    Examples:
      muster nodes taint node-7 gpu=bad:NoExecute --after 10m
      muster nodes taint node-7 gpu-
    """
    given = [_taint(word) for word in words if not word.endswith("-")]
    removed = [_name(word) for word in words if word.endswith("-")]
    async with session_of(context).client() as client:
        node = await client.nodes.taint(name, given, removed, after=_time(after))
    if not output.for_people:
        say_lines(text_of(node, output))
        return
    say(f"{name}: {', '.join(str(each.taint) for each in node.taints) or 'no taints'}")


def _taint(word: str) -> Taint:
    named, colon, effect = word.rpartition(":")
    if not colon:
        raise InvalidJobError(f"{word!r} is neither a taint like gpu=bad:NoSchedule nor one to take away like gpu-")
    key, _, value = named.partition("=")
    return Taint(key=_key(key, word), value=value, effect=_effect(effect))


def _name(word: str) -> TaintName:
    named, colon, effect = word.removesuffix("-").partition(":")
    key, equals, _ = named.partition("=")
    if equals:
        raise InvalidJobError(f"{word!r} names a value; a taint to take away is named by its key, like {key}-")
    return TaintName(key=_key(key, word), effect=_effect(effect) if colon else None)


def _key(key: str, word: str) -> str:
    if not re.fullmatch(NODE_LABEL, key):
        raise InvalidJobError(f"{word!r} has no key: at most 128 letters, digits and ._/- in between")
    return key


def _effect(word: str) -> TaintEffect:
    try:
        return TaintEffect(word)
    except ValueError:
        meant = next((each for each in TaintEffect if each.lower() == word.lower()), None) or nearest(word, TaintEffect)
        known = ", ".join(TaintEffect)
        raise InvalidJobError(
            f"{word!r} is no effect of a taint; there are {known}" + (f" (meant {meant}?)" if meant else "")
        ) from None


def _time(after: str | None) -> timedelta:
    from muster.jobfile.quantity import parse_duration

    return timedelta() if after is None else parse_duration(after)
