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
    from muster.cli.output.tables import TextTable

MOST_PRUNED_AT_ONCE = 500
"""Tokens in one call; the coordinator takes at most 1,024, and writes each call in one transaction."""

tokens = typer.Typer(
    help="""Make, list and revoke API tokens.

Examples:
  muster tokens
  muster tokens create --note "nightly sweep" --ttl 30d
""",
    no_args_is_help=True,
)

Ttl: TypeAlias = Annotated[str | None, typer.Option(metavar="TIME", help="Time that the token is valid: `12h`, `30d`.")]


@tokens.command("create")
@answers
async def create_token(
    context: typer.Context,
    *,
    account: Annotated[
        str, typer.Option("--for", metavar="NAME", help="Account that the token is for (default: yours).")
    ] = "",
    ttl: Ttl = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="Note on what the token is for, which lists show.")] = "",
    access: Annotated[
        Access | None, typer.Option(help="Most that the token may do (default: all that the account may).")
    ] = None,
    project: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PROJECT", help="Only project in which the token is valid; may be repeated (default: everywhere)."
        ),
    ] = None,
) -> None:
    """Make an API token and print it once.

    Without --ttl the token of a person ends after 90 days, and that of a program when it is revoked.

    Examples:
      muster tokens create --ttl 30d --note "my laptop"
      muster tokens create --for ci --access member --project vision
    """
    async with session_of(context).client() as client:
        secret, token = await client.tokens.create(
            account, note=note, ttl=span_of(ttl), access=access, projects=project or ()
        )
    from muster.cli.output.units import time_text

    say(secret)
    ends = f"ends at {time_text(token.expires_at)}" if token.expires_at else "never ends"
    print_dim(f"token {token.id} of {token.account}; it {ends} and is not shown again")


@tokens.command("list")
@answers
async def list_tokens(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List your API tokens, or as an admin all tokens; secrets are not shown.

    Examples:
      muster tokens list
      muster tokens list -o json
    """
    async with session_of(context).client() as client:
        found = await client.tokens.list()
    from muster.cli.output.trust import tokens_table

    show(found, output, tokens_table(found, datetime.now(UTC)))


@tokens.command("revoke")
@answers
async def revoke_token(
    context: typer.Context,
    token: Annotated[str, typer.Argument(metavar="ID", help="Id of the token, which `tokens list` shows.")],
) -> None:
    """Revoke an API token: nobody can use it any more.

    Examples:
      muster tokens revoke t4x9
      muster tokens list; muster tokens revoke t4x9
    """
    async with session_of(context).client() as client:
        revoked = await client.tokens.revoke(token)
    say(f"token {revoked.id} of {revoked.account} counts no more")


@tokens.command("prune")
@answers
async def prune_tokens(
    context: typer.Context,
    *,
    unused: Annotated[
        str, typer.Option(metavar="TIME", help="Time without use after which a token is revoked.")
    ] = "90d",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Revoke API tokens that nobody uses, and forget ended ones.

    These are your own tokens, or as an admin all.

    Examples:
      muster tokens prune
      muster tokens prune --unused 30d --yes
    """
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
        from muster.cli.output.trust import tokens_table

        screen(err=True).print(tokens_table(found, now))
        if not yes:
            typer.confirm(f"Revoke or forget {len(found)} tokens?", abort=True, err=True)
        revoked = 0
        for first in range(0, len(found), MOST_PRUNED_AT_ONCE):
            part = [token.id for token in found[first : first + MOST_PRUNED_AT_ONCE]]
            revoked += len(await client.tokens.prune(part))
    say(f"{revoked} tokens revoked, {len(found) - revoked} forgotten")


def show(found: Sequence[object], output: Format, table: "TextTable") -> None:
    """Print values as a table or as documents."""
    if output.for_people:
        screen(whole=output is Format.WIDE).print(table)
    else:
        say_lines(text_of(found, output))


def span_of(text: str | None) -> timedelta | None:
    """The length of time that an option says; None for None; raises InvalidJobError."""
    return None if text is None else parsed_span(text)


def parsed_span(text: str) -> timedelta:
    """The length of time that a text says; raises InvalidJobError."""
    from muster.jobfile.errors import FieldError
    from muster.jobfile.quantity import parse_duration

    try:
        return parse_duration(text)
    except FieldError as error:
        raise InvalidJobError(f"a time {error}") from None
