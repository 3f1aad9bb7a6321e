"""Commands about oneself: init, login, logout, whoami, logins."""

import asyncio
import getpass
import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Annotated

import typer

from muster.cli.context import answers, session_of
from muster.cli.options import Output
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say, say_lines, screen
from muster.cli.sign_in import document_line, signed_in
from muster.client.endpoint import (
    Login,
    choose_login,
    coordinator_address,
    forget_login,
    home,
    keep_login,
    local_address,
    login_of,
    logins_in,
    parse_address,
)
from muster.daemon.own_programs import command_of
from muster.domain.errors import ConflictError, InvalidJobError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import Myself


def init(
    state: Annotated[Path, typer.Option(envvar="MUSTER_STATE", help="Directory of the coordinator's state.")] = Path(
        "/var/lib/muster/coordinator"
    ),
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Address at which clients will be served.")
    ] = "0.0.0.0:7460",
    name: Annotated[
        list[str] | None,
        typer.Option(help="Name or address by which clients will reach the coordinator; may be repeated."),
    ] = None,
) -> None:
    """Prepare this machine as the coordinator of a fleet.

    The fleet's authority and its first admin are made, and how to log in is printed.

    Examples:
      muster init --name muster.example.org
      muster init --state /srv/muster --listen 0.0.0.0:7460
    """
    names = [part for each in name or () for part in ("--name", each)]
    command = command_of("coordinator", "--init", "--state", str(state), "--listen", listen, *names)
    raise typer.Exit(subprocess.run(command, check=False).returncode)  # noqa: S603 - our own program


@answers
async def login(
    address: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="Address of the coordinator (port: 7460 if left out).")
    ],
    *,
    authority: Annotated[
        str | None,
        typer.Option(
            metavar="sha256:…",
            help="Fingerprint of the fleet's authority, which the coordinator's first start printed; needed once.",
        ),
    ] = None,
    token_file: Annotated[Path | None, typer.Option(help="File with an API token; `-` is stdin.")] = None,
    sso: Annotated[
        bool,
        typer.Option("--sso", help="Use the identity provider of your organisation, even if MUSTER_TOKEN is set."),
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """Log in to a coordinator, and ask this one from now on.

    The token comes from --token-file, else from MUSTER_TOKEN, else from the identity provider of your organisation:
    open the URL that is shown in any browser and confirm the code. Where there is no provider, you are asked for a
    token.

    Examples:
      muster login muster.example.org --authority sha256:9f86d0...
      muster login muster.example.org --token-file token.txt
    """
    from muster.client.client import Client
    from muster.rpc.channel import Credentials
    from muster.rpc.pinning import pinned_authority
    from muster.trust.tokens import parse_api_token

    if sso and token_file is not None:
        raise InvalidJobError("--sso and --token-file are two ways to be known; take one")
    address = parse_address(address)
    if address == local_address(os.environ):
        raise ConflictError(f"`muster up` serves at {address} and has made you known there; no login is needed")
    known = () if authority else await asyncio.to_thread(_known_authorities, address)
    try:
        certificate = await pinned_authority(address, lambda found: _is_wanted(address, found, authority, known))
    except PermissionDeniedError as error:
        if not known:
            raise
        raise PermissionDeniedError(
            f"{error}. Another one is known here from an earlier login; if the fleet was made anew, log in with "
            "--authority sha256:…, as the first start of its coordinator printed it"
        ) from None
    token = None if sso else await asyncio.to_thread(_given_token, token_file)
    if token is None:
        token = await _token_of_person(address, certificate, output, asked=sso)
    token = str(parse_api_token(token))
    async with Client(address, Credentials(authority=certificate, token=token)) as client:
        myself = await client.accounts.myself()
    kept = Login(address=address, authority=certificate.decode(), token=token, account=myself.name)
    keep_login(home(os.environ), kept)
    if output.for_people:
        say(f"logged in to {address} as {myself.name}{_until(myself)}")
    else:
        say_lines(document_line({"address": address, "account": myself}, output))


@answers
async def logout(
    context: typer.Context,
    *,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Also revoke the token, so that it is of no use to anybody.")
    ] = False,
) -> None:
    """Forget the token for a coordinator.

    Examples:
      muster logout
      muster logout --revoke
    """
    named = session_of(context).coordinator
    address = parse_address(named) if named else coordinator_address(os.environ)
    if address == local_address(os.environ):
        raise ConflictError(f"`muster up` serves at {address} and makes you known there; `muster down` ends it")
    if revoke:
        async with session_of(context).client() as client:
            await client.tokens.revoke((await client.accounts.myself()).token)
    forget_login(home(os.environ), address)
    say(f"logged out of {address}")


@answers
async def whoami(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """Show who you are to the coordinator, and what you may do.

    Examples:
      muster whoami
      muster whoami -o json
    """
    async with session_of(context).client() as client:
        myself = await client.accounts.myself()
    if not output.for_people:
        say_lines(text_of(myself, output))
        return
    from muster.cli.output.tables import facts
    from muster.cli.output.trust import grants_text
    from muster.cli.output.units import time_text

    screen().print(
        facts(
            (
                ("name", myself.name),
                ("kind", myself.kind),
                ("identity", myself.identity),
                ("access", grants_text(myself.grants)),
                ("token", myself.token),
                ("until", "" if myself.expires_at is None else time_text(myself.expires_at)),
                ("coordinator", client.address),
            )
        )
    )


def _known_authorities(address: str) -> tuple[str, ...]:
    """The fingerprints of the authorities that an earlier login at the address trusts."""
    from muster.trust.certificates import fingerprints

    kept = login_of(os.environ, address).authority
    return fingerprints(kept.encode()) if kept else ()


def _is_wanted(address: str, found: str, wanted: str | None, known: Collection[str]) -> bool:
    if known:
        return found in known
    if wanted is not None:
        return found == wanted.removeprefix("sha256:").lower()
    if not sys.stdin.isatty():
        raise InvalidJobError(
            f"the coordinator at {address} is not known here; say --authority sha256:…, as its first start printed it"
        )
    say(f"the authority of the fleet at {address} has the fingerprint", err=True)
    say(f"  sha256:{found}", err=True)
    if input("is that the one that the coordinator's first start printed? [y/N] ").strip().lower() != "y":
        raise PermissionDeniedError("not logged in")
    return True


async def _token_of_person(address: str, certificate: bytes, form: Format, *, asked: bool) -> str:
    """A token from the identity provider; where there is none a person may type one, unless the provider was `asked`
    for.
    """
    try:
        return await signed_in(address, certificate, form)
    except UnknownNameError as error:
        if asked or not sys.stdin.isatty():
            raise PermissionDeniedError(str(error)) from None
    return await asyncio.to_thread(getpass.getpass, "token: ")


def _until(myself: Myself) -> str:
    return "" if myself.expires_at is None else f", until {myself.expires_at.astimezone():%Y-%m-%d %H:%M}"


def _given_token(file: Path | None) -> str | None:
    if file is None:
        return os.environ.get("MUSTER_TOKEN")
    if str(file) == "-":
        return sys.stdin.readline()
    from muster.trust.files import read_secret

    return read_secret(file)


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
