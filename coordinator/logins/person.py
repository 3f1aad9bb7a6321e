"""The way from an identity provider's claims to an account, without asking anybody."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from coordinator.logins.said import Json, shown
from coordinator.logins.settings import GroupGrant, LoginSettings
from coordinator.trust.accounts import named
from muster.domain.errors import ConflictError, InvalidJobError, PermissionDeniedError
from muster.domain.fleet.access import EVERYWHERE, Access, Account, AccountKind

MOST_GROUPS = 10_000
"""The most groups that are looked at; Entra stops at 200, others at none."""

_EMAIL = "email"
_NOT = (False, "false")


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """What the provider says of somebody who has confirmed a login."""

    identity: str
    """Issuer and subject: what stays when name and groups change."""
    name: str
    """The name that an account of this person would have."""
    groups: frozenset[str]


def person_of(claims: Json, settings: LoginSettings) -> Person:
    """The person that proven claims are about; PermissionDeniedError for one who cannot have an account."""
    return Person(
        identity=f"{claims['iss']}|{claims['sub']}",
        name=_name(claims, settings.name_claims),
        groups=_groups(claims, settings.groups_claim),
    )


def lacking(claims: Json, settings: LoginSettings) -> bool:
    """Whether name or groups are not among the claims; the provider may tell them when it is asked."""
    return settings.groups_claim not in claims or not any(claims.get(name) for name in settings.name_claims)


def grants_of(groups: Collection[str], rules: Iterable[GroupGrant], projects: Collection[str]) -> Mapping[str, Access]:
    """The most that any of the groups gives in each project that is there."""
    grants: dict[str, Access] = {}
    for rule in rules:
        had = grants.get(rule.project)
        there = rule.project == EVERYWHERE or rule.project in projects
        if rule.group in groups and there and (had is None or rule.access.covers(had)):
            grants[rule.project] = rule.access
    return grants


def no_access(person: Person) -> PermissionDeniedError:
    """What is said to a person whose groups give nothing."""
    groups = ", ".join(sorted(person.groups)[:20])
    had = f"your groups there are {groups}" if groups else "it lists no groups for you"
    return PermissionDeniedError(
        f"the identity provider knows you, but that gives you no access here: {shown(had, 1000)}; ask whoever runs "
        "this fleet, who names groups with --oidc-grant",
    )


def known_as(person: Person, accounts: Mapping[str, Account]) -> Account | None:
    """The account that a person has already, whatever the name is now."""
    return next((each for each in accounts.values() if each.identity == person.identity), None)


def account_of(person: Person, grants: Mapping[str, Access], accounts: Mapping[str, Account], now: datetime) -> Account:
    """The account of a person, old or new, with the access that the person's groups give now.

    ConflictError where another account has the name: somebody who can choose a name at the provider must not become
    somebody else here.
    """
    known = known_as(person, accounts)
    if known is not None:
        return replace(known, grants=grants)
    taken = accounts.get(person.name)
    if taken is not None:
        command = "users" if taken.kind is AccountKind.USER else "accounts"
        raise ConflictError(
            f"there is an account {person.name} already, which is not bound to your login at the identity provider; an "
            f"admin can make room with `muster {command} remove {person.name}`, or keep it and hand out a token",
        )
    return Account(name=person.name, kind=AccountKind.USER, created_at=now, grants=grants, identity=person.identity)


def _name(claims: Json, places: Iterable[str]) -> str:
    for place in places:
        found = claims.get(place)
        if isinstance(found, str) and found and not (place == _EMAIL and claims.get("email_verified") in _NOT):
            return _account_name(found, place)
    raise PermissionDeniedError(
        f"the identity provider does not say what you are called ({', '.join(places)}); whoever runs this fleet can "
        "choose another claim with --oidc-name-claim",
    )


def _account_name(found: str, place: str) -> str:
    try:
        # Letters of other scripts that become Latin ones in lower case are not let through.
        return named(found.lower() if found.isascii() else found, "an account")
    except InvalidJobError as error:
        raise PermissionDeniedError(
            f"the identity provider calls you {shown(found, 80)!r} ({place}), but {error}; whoever runs this fleet can "
            "choose another claim with --oidc-name-claim",
        ) from None


def _groups(claims: Json, place: str) -> frozenset[str]:
    found = claims.get(place)
    if found is None and place in _elsewhere(claims):
        raise PermissionDeniedError(
            "the identity provider leaves your groups out, as there are too many; whoever runs this fleet can have it "
            "list only those that are assigned to this client, or roles (docs/login.md)",
        )
    if place == _EMAIL and claims.get("email_verified") is not True:
        return frozenset()  # anybody could have written it down
    values = found if isinstance(found, list) else [found]
    return frozenset(value for value in values[:MOST_GROUPS] if isinstance(value, str) and value)


def _elsewhere(claims: Json) -> Collection[str]:
    """Claims that are kept at another place, as Entra does with long lists."""
    names = claims.get("_claim_names")
    return names.keys() if isinstance(names, Mapping) else ()
