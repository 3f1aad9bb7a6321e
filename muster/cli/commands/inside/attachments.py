"""The command attachments: who is attached where."""

from datetime import UTC, datetime
from typing import Annotated

import typer

from muster.cli.context import answers, session_of
from muster.cli.options import Output, complete_jobs
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say, say_lines, screen

JobOrAll = Annotated[
    str | None,
    typer.Argument(metavar="[JOB]", help="Only attachments to this job (default: all).", autocompletion=complete_jobs),
]


@answers
async def attachments(
    context: typer.Context,
    job: JobOrAll = None,
    *,
    end: Annotated[
        list[str] | None,
        typer.Option("--end", metavar="ATTACHMENT", help="End this attachment; may be repeated."),
    ] = None,
    output: Output = Format.TABLE,
) -> None:
    """List who is attached to running executions, or end attachments.

    Examples:
      muster attachments train
      muster attachments --end 4f2a91c07be3
    """
    async with session_of(context).client() as client:
        for each in end or ():
            await client.attachments.close(each)
            say(f"{each} is ended")
        if end:
            return
        opened = await client.attachments.list(job or "")
    if not output.for_people:
        say_lines(text_of(opened, output))
        return
    from muster.cli.output.executions import attachments_table

    screen(whole=output is Format.WIDE).print(attachments_table(opened, datetime.now(UTC)))
