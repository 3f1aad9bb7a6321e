"""Commands about where one is logged in: logins, logins use."""

import os
from typing import Annotated

import typer

from muster.cli.context import answers
from muster.cli.options import Output
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say, say_lines
from muster.client.endpoint import choose_login, coordinator_address, home, logins_in
from muster.domain.errors import ConflictError, UnknownNameError

logins = typer.Typer(invoke_without_command=True)


@logins.callback()
def listed(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List the coordinators you are logged in to. A star marks the one that commands ask.

    Examples:
      muster logins
      muster logins -o json
    """
    if context.invoked_subcommand is not None:
        return
    asked = coordinator_address(os.environ)
    found = [
        {"address": login.address, "account": login.account, "current": login.address == asked}
        for login in logins_in(home(os.environ))
    ]
    if not output.for_people:
        say_lines(text_of(found, output))
        return
    rows = [("", "COORDINATOR", "ACCOUNT")]
    rows += [("*" if each["current"] else "", str(each["address"]), str(each["account"] or "-")) for each in found]
    width = max(len(address) for _, address, _ in rows)
    say_lines("".join(f"{star:1}  {address:{width}}  {account}\n" for star, address, account in rows))


@logins.command()
@answers
async def use(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Address of the coordinator, or the beginning of it.")],
) -> None:
    """Choose the coordinator that commands ask. It holds until the next `muster login` or `muster up`.

    Examples:
      muster logins use fleet.example.org:7460
      muster logins use fleet

    """
    known = [login.address for login in logins_in(home(os.environ))]
    meant = [name] if name in known else [address for address in known if address.startswith(name)]
    if not meant:
        shown = f"you are logged in to {', '.join(known)}" if known else "you are logged in nowhere"
        raise UnknownNameError(f"there is no login at {name!r}; {shown}")
    if len(meant) > 1:
        raise ConflictError(f"{name!r} is the beginning of {', '.join(meant)}; give more of it")
    choose_login(home(os.environ), meant[0])
    say(f"commands ask {meant[0]} from now on")
    if chosen := os.environ.get("MUSTER_COORDINATOR"):
        say(f"but MUSTER_COORDINATOR is set to {chosen} here, and goes first", err=True)
