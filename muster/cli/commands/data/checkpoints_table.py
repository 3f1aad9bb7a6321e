"""Checkpoints of a job as a table."""

from collections.abc import Iterator, Sequence

from muster.cli.output.plain.columns import Column
from muster.cli.output.tables import TextTable, listing
from muster.domain.data.checkpoint import CheckpointView
from muster.domain.quantity import moment_text, size_text

RANKS_LISTED = 8
"""Ranks of a checkpoint that a line of the table names."""


def checkpoints_table(checkpoints: Sequence[CheckpointView]) -> TextTable:
    """A line for each checkpoint."""
    columns: tuple[str | Column, ...] = (
        "NAME",
        Column("ATTEMPT", right=True),
        "STORED",
        Column("PARTS", right=True),
        Column("FILES", right=True),
        Column("SIZE", right=True),
        "STATE",
    )
    return listing(
        columns,
        (
            (
                each.name,
                str(each.attempt),
                moment_text(each.at),
                f"{each.parts}/{each.needed}",
                str(each.files),
                size_text(each.bytes),
                state_text(each),
            )
            for each in checkpoints
        ),
    )


def state_text(checkpoint: CheckpointView) -> str:
    """Whether it is whole, or what it lacks, and what else is known of it."""
    return ", ".join(_words(checkpoint))


def _words(checkpoint: CheckpointView) -> Iterator[str]:
    if checkpoint.spoiled:
        yield f"written anew by {_ranks(checkpoint.spoiled)}"
    elif checkpoint.whole:
        yield "whole"
    else:
        yield f"lacks {_ranks(checkpoint.lacking)}"
    if checkpoint.restored:
        yield "restored"
    if checkpoint.pinned:
        yield "pinned"
    if checkpoint.bad:
        yield "bad"


def _ranks(ranks: Sequence[int]) -> str:
    named = ",".join(map(str, ranks[:RANKS_LISTED]))
    more = ",…" if len(ranks) > RANKS_LISTED else ""
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {named}{more}"
