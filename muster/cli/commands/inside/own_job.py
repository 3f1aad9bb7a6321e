"""A job for one command of somebody who sits here: `muster run -it`. It ends when the command does."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from muster.cli.commands.inside.execute import attached, until_running, variables
from muster.cli.commands.submit import Wish, submitted
from muster.cli.context import CliContext
from muster.cli.output.screen import print_dim
from muster.domain.attachments.request import CommandRequest
from muster.domain.errors import InvalidJobError, MusterError
from muster.domain.jobs.job import JobSpec

ORDER_LIMIT_AT_END = 10.0
"""Seconds in which the coordinator takes the order to stop the job."""


async def run_in_own_job(
    session: CliContext, spec: JobSpec, words: Sequence[str], wish: Wish, *, terminal: bool
) -> int:
    """Submit a job that waits, run a command in it, joined with this program, and stop the job; the command's code.

    Without words it is a shell, which needs a terminal.
    """
    from muster.cli.attaching.terminal import has_terminal, terminal_size

    if terminal and not has_terminal():
        raise InvalidJobError("-t needs a terminal on stdin and stdout; -i alone passes on what comes on stdin")
    if not words and not terminal:
        raise InvalidJobError("say what to run: muster run -i -- COMMAND")
    request = CommandRequest(
        words=tuple(words),
        env=variables((), terminal=terminal),
        terminal=terminal_size() if terminal else None,
        has_input=True,
    )
    async with session.client() as client:
        job = await submitted(client, spec, wish)
        try:
            await until_running(client, job.id, 0)
            return await attached(client, job.id, 0, request, wait=False)
        finally:
            with suppress(MusterError, TimeoutError):
                async with asyncio.timeout(ORDER_LIMIT_AT_END):
                    await client.jobs.stop(job.id)
            print_dim(f"{spec.name} ({job.id}) is stopped")
