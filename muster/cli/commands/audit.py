"""`muster audit`: who did what and who was refused, and whether the audit log is as it was written."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muster.cli.commands.tokens import show, span_of
from muster.cli.context import answers, session_of
from muster.cli.exit_codes import ExitCode
from muster.cli.options import Output
from muster.cli.output.documents import Format
from muster.cli.output.screen import print_dim, say
from muster.domain.errors import InvalidJobError

if TYPE_CHECKING:
    from muster.domain.fleet.access import AuditAnchor
    from muster.domain.fleet.audit_chain import ChainCheck

audit = typer.Typer(invoke_without_command=True)


@audit.callback()
def listed(
    context: typer.Context,
    *,
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only entries of the last `10m`, `2h` or `7d`.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only entries older than `10m`, `2h` or `7d`.")
    ] = None,
    user: Annotated[str, typer.Option(metavar="NAME", help="Only what this account did; `node/NAME` for a node.")] = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, metavar="COUNT", help="Most entries to show.")] = 1000,
    oldest: Annotated[
        bool, typer.Option("--oldest", help="Begin with the oldest entries (default: with the newest).")
    ] = False,
    page: Annotated[str, typer.Option(metavar="PAGE", help="Page to show, which the page before has named.")] = "",
    output: Output = Format.TABLE,
) -> None:
    """Show who did what, and who was refused, oldest first.

    Examples:
      muster audit --since 1d
      muster audit --user ada -o json
    """
    if context.invoked_subcommand is None:
        _show(context, since=since, until=until, user=user, limit=limit, oldest=oldest, page=page, output=output)


@answers
async def _show(
    context: typer.Context,
    *,
    since: str | None,
    until: str | None,
    user: str,
    limit: int,
    oldest: bool,
    page: str,
    output: Format,
) -> None:
    begin, end = _ago(since), _ago(until)
    async with session_of(context).client() as client:
        found = await client.audit.page(since=begin, until=end, who=user, limit=limit, oldest_first=oldest, page=page)
    from muster.cli.output.trust import audit_table

    show(found.entries, output, audit_table(found.entries))
    if found.next_page:
        print_dim(f"there are {'newer' if oldest else 'older'} entries: --page {found.next_page}")


def _ago(text: str | None) -> datetime | None:
    span = span_of(text)
    return None if span is None else datetime.now(UTC) - span


@audit.command()
@answers
async def verify(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="File that the coordinator's `--audit-file` has written (default: the coordinator is asked)."
        ),
    ] = None,
    *,
    expect: Annotated[
        str, typer.Option(metavar="NUMBER:HASH", help="Entry that must be there, as noted at an earlier check.")
    ] = "",
) -> ExitCode:
    """Check that no entry of the audit log was changed.

    The first entry that was changed, removed or put in between is named.

    Examples:
      muster audit verify
      muster audit verify audit.jsonl --expect 4711:9f86d0
    """
    noted = _noted(expect)
    if file is not None:
        return _told(_checked(file, noted))
    async with session_of(context).client() as client:
        return _told(await client.audit.verify(noted))


def _noted(expect: str) -> "AuditAnchor | None":
    from muster.domain.fleet.access import AuditAnchor

    number, _, digest = expect.partition(":")
    if expect and not (number.isdecimal() and digest):
        raise InvalidJobError(f"--expect {expect!r} is no number and hash like 4711:9f86d0…")
    return AuditAnchor(number=int(number), hash=digest.lower()) if expect else None


def _checked(file: Path, noted: "AuditAnchor | None") -> "ChainCheck":
    """The check of a file; raises InvalidJobError where it cannot be read."""
    from muster.domain.fleet.audit_chain import AuditLineError, ChainCheck, entry_of

    check, number = ChainCheck(expected=noted), 0
    try:
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                number += 1
                if check.take(entry_of(line)) is not None:
                    break
    except AuditLineError as error:
        raise InvalidJobError(f"{file}, line {number}: {error}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidJobError(f"{file} cannot be read: {error}") from None
    check.end()
    return check


def _told(check: "ChainCheck") -> ExitCode:
    if check.broken is not None:
        say(f"the chain does not hold at entry {check.broken.number}: {check.broken.problem}")
        return ExitCode.JOB_FAILED
    if check.first is None or check.last is None:
        say("there are no entries")
        return ExitCode.SUCCESS
    say(f"{check.count} entries hold, from {check.first.number} to {check.last.number}")
    print_dim(f"to prove later that none of them was rewritten, note: --expect {check.last.number}:{check.last.hash}")
    return ExitCode.SUCCESS
