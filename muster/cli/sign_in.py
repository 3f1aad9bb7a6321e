"""Logging in through the identity provider: shows where to confirm, waits, and gives the token."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from muster.cli.output.documents import Format, line_of
from muster.cli.output.screen import say, say_lines, screen
from muster.domain.visible_text import visible

if TYPE_CHECKING:
    from muster.client.client import Client
    from muster.domain.fleet.login import PendingLogin

SIGN_IN_PATIENCE = 45.0
"""Seconds for one question: the coordinator asks the provider in turn, up to three times."""


async def signed_in(address: str, authority: bytes, form: Format) -> str:
    """The API token of the person who confirms; UnknownNameError where the coordinator knows no identity provider."""
    from muster.client.client import Client
    from muster.rpc.channel import Credentials

    async with Client(address, Credentials(authority=authority), timeout=SIGN_IN_PATIENCE) as client:
        pending = await client.logins.start()
        say_lines(_invitation(address, pending, form) + "\n", err=form.for_people, flush=True)
        try:
            with _waiting(pending):
                return await _confirmed(client, pending)
        except asyncio.CancelledError:
            say("not logged in; leave the code alone, it expires by itself", err=True)
            raise


def document_line(value: object, form: Format) -> str:
    """One of several documents on stdout: JSON a line, or an item of a YAML list."""
    return ("- " if form is Format.YAML else "") + line_of(value)


async def _confirmed(client: "Client", pending: "PendingLogin") -> str:
    interval = pending.interval
    while True:
        await asyncio.sleep(interval.total_seconds())
        outcome = await client.logins.finish(pending)
        if not isinstance(outcome, timedelta):
            return outcome[0]
        interval = outcome


def _invitation(address: str, pending: "PendingLogin", form: Format) -> str:
    if not form.for_people:
        shown = {
            "verification_uri": pending.verification_uri,
            "verification_uri_complete": pending.verification_uri_complete,
            "user_code": pending.user_code,
            "expires_at": pending.expires_at,
        }
        return document_line(shown, form).rstrip("\n")
    whole = f"or open this, and compare the code:\n  {visible(pending.verification_uri_complete)}\n"
    return (
        f"to log in to {address}, open\n  {visible(pending.verification_uri)}\n"
        f"and enter the code\n  {visible(pending.user_code)}\n"
        f"{whole if pending.verification_uri_complete else ''}"
        f"(it counts until {pending.expires_at.astimezone():%H:%M}; Ctrl-C gives up)"
    )


@contextmanager
def _waiting(pending: "PendingLogin") -> Iterator[None]:
    """Something that moves, where somebody looks."""
    if not sys.stderr.isatty():
        yield
        return
    from muster.cli.output.tables import shown

    with screen(err=True).status(shown(f"waiting for you to confirm {pending.user_code} …")):
        yield
