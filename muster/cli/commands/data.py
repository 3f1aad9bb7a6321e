"""Commands for data of jobs."""

from pathlib import Path
from typing import Annotated

import typer

from muster.cli.context import answers, session_of
from muster.cli.options import Output
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say, say_lines


@answers
async def upload(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", exists=True, file_okay=False, help="Folder to send.")
    ] = Path(),
    *,
    project: Annotated[
        str,
        typer.Option(
            "--project", metavar="PROJECT", envvar="MUSTER_PROJECT", help="Project of it (default: your only project)."
        ),
    ] = "",
    output: Output = Format.TABLE,
) -> None:
    """Send a folder to the fleet's depot, from which jobs get it.

    `muster run --code` and `code` in a job file do the same by themselves. What is in the depot already is not sent
    again, and what no job uses is removed after a day.

    Examples:
      muster upload
      muster upload trainer --project vision
    """
    async with session_of(context).client() as client:
        sent = await client.data.upload(folder, project=project)
    if output.for_people:
        say(f"{sent.sentence}; tree {sent.tree}")
    else:
        say_lines(text_of(sent, output))
