"""The part of the coordinator's settings that says how people log in through an identity provider."""

import argparse
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from muster.domain.fleet.access import EVERYWHERE, Access
from muster.domain.jobs.rules.job_values import LABEL
from muster.jobfile.errors import FieldError
from muster.jobfile.quantity import parse_duration
from muster.rpc.channel import is_loopback

DEFAULT_TTL = timedelta(hours=12)
LONGEST_LOGIN_TTL = timedelta(days=30)
"""A token of a login lives on when the provider has closed the account, so never for long."""
NAME_CLAIMS = ("preferred_username", "email")
GROUPS_CLAIM = "groups"

_PREFIX = "oidc_"
_PROJECT = re.compile(LABEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupGrant:
    """What the members of a group at the identity provider may do."""

    group: str
    project: str
    """EVERYWHERE: all of them."""
    access: Access


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSettings:
    """An identity provider, and what those whom it knows may do here."""

    issuer: str
    """The provider's name, which is the URL of all that it serves."""
    client_id: str
    """What it calls this coordinator."""
    client_secret_file: Path | None = None
    """File with which the coordinator shows that it is that client; None: a public client, which has none."""
    ca_file: Path | None = None
    """Authorities that signed the provider's certificate; None: those that this machine trusts."""
    name_claims: tuple[str, ...] = NAME_CLAIMS
    """Where the name of a person stands; the first that is there."""
    groups_claim: str = GROUPS_CLAIM
    """Where the groups of a person stand."""
    grants: tuple[GroupGrant, ...] = ()
    ttl: timedelta = DEFAULT_TTL
    """How long a login counts."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Let the command line name an identity provider."""
    group = parser.add_argument_group("login through an identity provider (OpenID Connect); docs/login.md")
    group.add_argument("--oidc-issuer", type=_issuer, metavar="URL", help="who knows the people")
    group.add_argument("--oidc-client-id", metavar="ID", help="what it calls this coordinator")
    group.add_argument("--oidc-client-secret-file", type=Path, metavar="FILE", help="nothing for a public client")
    group.add_argument(
        "--oidc-ca-file", type=Path, metavar="FILE", help="authorities (PEM) that signed its certificate"
    )
    group.add_argument(
        "--oidc-name-claim", metavar="CLAIM", help=f"holds the name of a person ({', else '.join(NAME_CLAIMS)})"
    )
    group.add_argument("--oidc-groups-claim", metavar="CLAIM", help=f"holds the groups of a person ({GROUPS_CLAIM})")
    group.add_argument(
        "--oidc-grant",
        type=_grant,
        action="append",
        default=[],
        metavar="GROUP=PROJECT:ACCESS",
        help="what a group may do, like ml=vision:member; project * is all of them; may be repeated",
    )
    group.add_argument("--oidc-ttl", type=_ttl, metavar="TIME", help="how long a login counts, like 12h (12h)")


def without_login(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are not about logins."""
    return {name: value for name, value in given.items() if not name.startswith(_PREFIX)}


def login_settings(parser: argparse.ArgumentParser, given: Mapping[str, Any]) -> LoginSettings | None:
    """How people log in; None: by token alone. Exits with a message where something is missing."""
    said = {name.removeprefix(_PREFIX): value for name, value in given.items() if name.startswith(_PREFIX)}
    said = {name: value for name, value in said.items() if value}
    if not said:
        return None
    for name in ("issuer", "client_id", "grant"):
        if not said.get(name):
            missing = f"--oidc-{name.replace('_', '-')}"
            parser.error(f"login through an identity provider needs {missing}, too; docs/login.md tells how")
    if given.get("local"):
        parser.error("--local serves this machine only, whose user is known already; leave the --oidc options out")
    grants, name = tuple(said.pop("grant")), said.pop("name_claim", None)
    return LoginSettings(**said, grants=grants, name_claims=NAME_CLAIMS if name is None else (name,))


def permitted_url(url: str) -> bool:
    """Whether what is said there is said to nobody else: https, or http that does not leave this machine."""
    try:
        parts = urlsplit(url)
        port = parts.port or 0
    except ValueError:
        return False
    if not parts.hostname or parts.username is not None or not url.isprintable() or " " in url:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(f"{parts.hostname}:{port}"))


def _issuer(text: str) -> str:
    if not permitted_url(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no URL like https://login.example.org/realms/main (plain http only on 127.0.0.1)"
        )
    return text


def _grant(text: str) -> GroupGrant:
    # From the right: names of groups may have `=` and `:` in them, as those of LDAP do.
    group, _, grant = text.rpartition("=")
    project, _, access = grant.rpartition(":")
    if not group or (project != EVERYWHERE and not _PROJECT.fullmatch(project)) or access not in tuple(Access):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not GROUP=PROJECT:ACCESS, where access is one of {', '.join(Access)}"
        )
    return GroupGrant(group=group, project=project, access=Access(access))


def _ttl(text: str) -> timedelta:
    try:
        ttl = parse_duration(text)
    except FieldError as error:
        raise argparse.ArgumentTypeError(f"a time {error}") from None
    if not timedelta(0) < ttl <= LONGEST_LOGIN_TTL:
        raise argparse.ArgumentTypeError(f"a login may count for a second up to {LONGEST_LOGIN_TTL.days} days")
    return ttl
