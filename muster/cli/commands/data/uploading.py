"""The command that sends a folder to the depot."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muster.cli.context import answers, session_of
from muster.cli.options import Output
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import clear_status, draw_share, say, say_lines

if TYPE_CHECKING:
    from muster.client.client import Client
    from muster.domain.data.upload import UploadedFolder


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
    """Send a folder to the fleet's depot.

    What `.gitignore` and `.musterignore` leave out stays here, and what is in the depot already is not sent again.
    After a break the same command goes on where it was.

    Examples:
      muster upload
      muster upload trainer --project vision
    """
    async with session_of(context).client() as client:
        sent = await uploaded(client, folder, project)
    if output.for_people:
        say(f"{sent.sentence}; tree {sent.tree}")
    else:
        say_lines(text_of(sent, output))


async def uploaded(client: "Client", folder: Path, project: str) -> "UploadedFolder":
    """Send a folder, and say on a terminal meanwhile how far it is."""
    sent = await client.data.upload(folder, project=project, told=partial(draw_share, "sending"))
    clear_status()
    return sent
