"""Kept shells in lists, and how one is ended: what `muster shell` does with `--list` and `--end`."""

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import print_dim, say, say_lines, screen
from muster.domain.attachments.frame import KeptShell
from muster.domain.errors import MusterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muster.client.client import Client

ASKED_AT_ONCE = 64
"""Ranks that are asked at the same time."""


class ShellOfRank(NamedTuple):
    """A kept shell, and where it is."""

    rank: int
    name: str
    pid: int
    attached: bool


async def list_kept(client: "Client", job: str, ranks: "Sequence[int]", output: Format) -> None:
    """Print the kept shells of these ranks; a rank that cannot be asked is named on stderr."""
    turns = asyncio.Semaphore(ASKED_AT_ONCE)

    async def asked(rank: int) -> list[ShellOfRank]:
        async with turns:
            try:
                return [_of_rank(rank, each) for each in await client.attachments.kept(job, rank=rank)]
            except MusterError as error:
                print_dim(f"rank {rank}: {error}")
                return []

    async with asyncio.TaskGroup() as tasks:
        asking = [tasks.create_task(asked(rank), name=f"kept shells of rank {rank}") for rank in sorted(ranks)]
    shells = [shell for each in asking for shell in each.result()]
    if not output.for_people:
        say_lines(text_of([shell._asdict() for shell in shells], output))
    elif not shells:
        say(f"{job} has no kept shells; `muster shell {job} --keep NAME` opens one")
    else:
        from muster.cli.output.executions import kept_shells_table

        screen().print(kept_shells_table(shells))


def _of_rank(rank: int, shell: KeptShell) -> ShellOfRank:
    return ShellOfRank(rank=rank, name=shell.name, pid=shell.pid, attached=shell.attached)
