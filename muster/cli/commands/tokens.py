"""Commands about API tokens, and what commands about trust have in common."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from muster.cli.context import answers, session_of
from muster.cli.options import Output
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import print_dim, say, say_lines, screen
from muster.domain.errors import InvalidJobError
from muster.domain.fleet.access import Access

if TYPE_CHECKING:
    from rich.table import Table

MOST_PRUNED_AT_ONCE = 500
"""Tokens in one call; the coordinator takes at most 1,024, and writes each call in one transaction."""

tokens = typer.Typer(help="API tokens.", no_args_is_help=True)

Ttl: TypeAlias = Annotated[str | None, typer.Option(metavar="TIME", help="How long it counts, like 12h or 30d.")]


@tokens.command("create")
@answers
async def create_token(
    context: typer.Context,
    *,
    account: Annotated[
        str, typer.Option("--for", metavar="NAME", help="Whom it makes known; yourself otherwise.")
    ] = "",
    ttl: Ttl = None,
    note: Annotated[str, typer.Option(help="What it is for.")] = "",
    access: Annotated[
        Access | None, typer.Option(help="The most that it may (default: all that the account may).")
    ] = None,
    project: Annotated[
        list[str] | None,
        typer.Option(metavar="PROJECT", help="The token counts only there; may be repeated (default: everywhere)."),
    ] = None,
) -> None:
    """Make an API token and print it, this once.

    Without --ttl a person's token ends after 90 days, and that of a program when it is revoked.
    """
    async with session_of(context).client() as client:
        secret, token = await client.tokens.create(
            account, note=note, ttl=span_of(ttl), access=access, projects=project or ()
        )
    say(secret)
    ends = f"ends at {token.expires_at:%Y-%m-%d %H:%M} UTC" if token.expires_at else "never ends"
    print_dim(f"token {token.id} of {token.account}; it {ends} and is not shown again")


@tokens.command("list")
@answers
async def list_tokens(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List API tokens without their secrets: your own, or as an admin all."""
    async with session_of(context).client() as client:
        found = await client.tokens.list()
    from muster.cli.output.trust import tokens_table  # noqa: PLC0415 - Rich

    show(found, output, tokens_table(found, datetime.now(UTC)))


@tokens.command("revoke")
@answers
async def revoke_token(
    context: typer.Context, token: Annotated[str, typer.Argument(metavar="ID", help="As `tokens list` shows it.")]
) -> None:
    """Make an API token count no more."""
    async with session_of(context).client() as client:
        revoked = await client.tokens.revoke(token)
    say(f"token {revoked.id} of {revoked.account} counts no more")


@tokens.command("prune")
@answers
async def prune_tokens(
    context: typer.Context,
    *,
    unused: Annotated[
        str, typer.Option(metavar="TIME", help="Revoke what was not used for so long, like 30d.")
    ] = "90d",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Revoke API tokens that nobody uses, and forget those that have ended: your own, or as an admin all."""
    now, span = datetime.now(UTC), span_of(unused) or timedelta()
    async with session_of(context).client() as client:
        own = (await client.accounts.myself()).token
        found = [
            token
            for token in await client.tokens.list()
            if token.id != own and (not token.valid(now) or token.idle_since(now - span))
        ]
        if not found:
            say("nothing to prune")
            return
        from muster.cli.output.trust import tokens_table  # noqa: PLC0415 - Rich

        screen(err=True).print(tokens_table(found, now))
        if not yes:
            typer.confirm(f"Revoke or forget {len(found)} tokens?", abort=True, err=True)
        revoked = 0
        for first in range(0, len(found), MOST_PRUNED_AT_ONCE):
            part = [token.id for token in found[first : first + MOST_PRUNED_AT_ONCE]]
            revoked += len(await client.tokens.prune(part))
    say(f"{revoked} tokens revoked, {len(found) - revoked} forgotten")


def show(found: Sequence[object], output: Format, table: "Table") -> None:
    """Print values as a table or as documents."""
    if output is Format.TABLE:
        screen().print(table)
    else:
        say_lines(text_of(found, output))


def span_of(text: str | None) -> timedelta | None:
    """The length of time that an option says; None for None; raises InvalidJobError."""
    if text is None:
        return None
    from muster.jobfile.errors import FieldError  # noqa: PLC0415
    from muster.jobfile.quantity import parse_duration  # noqa: PLC0415

    try:
        return parse_duration(text)
    except FieldError as error:
        raise InvalidJobError(f"a time {error}") from None
