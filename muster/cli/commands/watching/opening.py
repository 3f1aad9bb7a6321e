"""The command open."""

import asyncio
import html
import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from muster.cli.context import answers, session_of
from muster.cli.options import Output, complete_jobs
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import print_dim, say, say_lines
from muster.client.endpoint import home, login_of
from muster.domain.errors import UnknownNameError

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Variables one of which is set where a browser can be shown."""


@answers
async def open_console(
    context: typer.Context,
    job: Annotated[
        str | None,
        typer.Argument(
            metavar="[JOB]",
            help="Id, unique beginning of an id, or name of a job to begin with.",
            autocompletion=complete_jobs,
        ),
    ] = None,
    *,
    print_link: Annotated[bool, typer.Option("--print", help="Print the link, and open no browser.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Open the console in your browser, where you are signed in.

    The link counts once, and for a minute. Without a browser here it is printed. Whoever opens it is signed in as
    you, so give it to nobody.

    Examples:
      muster open
      muster open train --print
    """
    async with session_of(context).client() as client:
        path = "" if job is None else f"jobs/{(await client.jobs.get(job)).id}"
        code = await client.logins.hand()
        console = code.console or login_of(os.environ, client.address).console
    if not console:
        raise UnknownNameError(
            f"the coordinator at {client.address} names no console; whoever runs it says where one is with "
            "--console-url"
        )
    link = code.link(console, path)
    if not output.for_people:
        say_lines(text_of({"url": link, "expires_at": code.expires_at}, output))
    elif print_link or not await asyncio.to_thread(_opened, link):
        say(link)
        print_dim(f"open this link; it {_counts_until(code.expires_at)}")
    else:
        say(f"your browser opens {console}/{path}")
        print_dim(f"if it does not, open what `muster open --print` prints; the link {_counts_until(code.expires_at)}")


def _counts_until(expires_at: "datetime") -> str:
    return f"counts once, until {expires_at.astimezone():%H:%M:%S}"


def _opened(link: str) -> bool:
    """Whether a browser was told to open the link; False where there is none."""
    import webbrowser

    if sys.platform == "linux" and not any(os.environ.get(name) for name in _SCREENS):
        return False
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return False
    return browser.open(_page_leading_to(link).as_uri())


def _page_leading_to(link: str) -> "Path":
    """A file that only this user can read: arguments of programs are read by everybody on a machine."""
    from muster.trust.files import write_private

    page, shown = home(os.environ).absolute() / "open.html", html.escape(link)
    page.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(
        page,
        f'<!doctype html><meta charset="utf-8"><title>Muster</title><meta http-equiv="refresh" content="0;url={shown}">'
        f'<p><a href="{shown}">Muster</a></p>\n'.encode(),
    )
    return page
