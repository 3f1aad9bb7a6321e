"""People and programs over HTTP: oneself, accounts, tokens and the audit log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Annotated

from fastapi import Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from console.api.answers import many, one
from console.api.asking import AsCaller
from console.api.reading import Count, Fields, Page, PageSize, Seconds, Time, span_of
from console.api.route import Listed, Route
from muster.domain.fleet.access import (
    Access,
    Account,
    AccountKind,
    AuditEntry,
    IssuedJoinToken,
    IssuedToken,
    Myself,
)


class NewAccount(Fields):
    """An account that is to be made."""

    name: str = Field(min_length=1, max_length=200)
    kind: AccountKind
    grants: Mapping[str, Access] = Field(default_factory=dict, description="Access by project; `*`: everywhere.")


class NewToken(Fields):
    """An API token that is to be made."""

    account: str = Field(default="", description="Whose; empty: one's own.")
    note: str = Field(default="", max_length=500)
    ttl: Seconds | None = Field(default=None, description="Seconds until it ends; none: as the account has it.")
    access: Access | None = Field(default=None, description="The most that it may; none: all that its account may.")
    projects: Sequence[str] = Field(default=(), description="Where alone it counts; none: everywhere.")


class NewJoinToken(Fields):
    """A join token that is to be made."""

    ttl: Seconds | None = Field(default=None, description="Seconds until it ends.")
    uses: Count = Field(default=1, description="Nodes that can join with it.")
    labels: Mapping[str, str] = Field(default_factory=dict, description="Labels that its nodes get.")


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeToken:
    """An API token with its secret, which is shown this once."""

    secret: str = field(repr=False)
    token: IssuedToken


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeJoinToken:
    """A join token with its secret, which is shown this once."""

    secret: str = field(repr=False)
    token: IssuedJoinToken


async def show_myself(request: Request, client: AsCaller) -> Response:
    """Say who one is to the coordinator, and what one may."""
    return one(request, await client.accounts.myself())


async def list_accounts(client: AsCaller, kind: Annotated[AccountKind | None, Query()] = None) -> Response:
    """Accounts by name, of one kind or all."""
    return many(await client.accounts.list(kind))


async def add_account(request: Request, client: AsCaller, account: NewAccount) -> Response:
    """Make an account."""
    made = await client.accounts.add(account.name, account.kind, account.grants)
    return one(request, made, HTTPStatus.CREATED)


async def remove_account(client: AsCaller, kind: AccountKind, account: str) -> Response:
    """Forget an account and its tokens."""
    await client.accounts.remove(account, kind)
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def list_tokens(client: AsCaller) -> Response:
    """One's API tokens, or all for who may see them, oldest first."""
    return many(await client.tokens.list())


async def make_token(request: Request, client: AsCaller, token: NewToken) -> Response:
    """Make an API token; its secret is shown this once."""
    secret, made = await client.tokens.create(
        token.account, note=token.note, ttl=span_of(token.ttl), access=token.access, projects=token.projects
    )
    return one(request, MadeToken(secret=secret, token=made), HTTPStatus.CREATED)


async def revoke_token(request: Request, client: AsCaller, token: str) -> Response:
    """Have an API token count no more."""
    return one(request, await client.tokens.revoke(token))


async def list_join_tokens(client: AsCaller) -> Response:
    """Join tokens, oldest first."""
    return many(await client.join_tokens.list())


async def make_join_token(request: Request, client: AsCaller, token: NewJoinToken) -> Response:
    """Make a join token; its secret is shown this once."""
    secret, made = await client.join_tokens.create(ttl=span_of(token.ttl), uses=token.uses, labels=token.labels)
    return one(request, MadeJoinToken(secret=secret, token=made), HTTPStatus.CREATED)


async def revoke_join_token(request: Request, client: AsCaller, token: str) -> Response:
    """Have a join token let no node in any more."""
    return one(request, await client.join_tokens.revoke(token))


async def list_audit(  # noqa: PLR0913 - one for each condition
    *,
    client: AsCaller,
    who: Annotated[str, Query(description="The name of an account; none: all.")] = "",
    since: Time = None,
    until: Time = None,
    oldest_first: Annotated[bool, Query()] = False,
    page_size: PageSize = 100,
    page: Page = "",
) -> Response:
    """Entries of the audit log: the newest that fit, or the oldest."""
    found = await client.audit.page(
        who=who, since=since, until=until, limit=page_size, oldest_first=oldest_first, page=page
    )
    return many(found.entries, found.next_page)


TRUST_ROUTES = (
    Route(verb="GET", path="/v1/whoami", operation="accounts.whoami", handler=show_myself, answer=Myself),
    Route(verb="GET", path="/v1/accounts", operation="accounts.list", handler=list_accounts, answer=Listed(Account)),
    Route(
        verb="POST",
        path="/v1/accounts",
        operation="accounts.add",
        handler=add_account,
        answer=Account,
        status=HTTPStatus.CREATED,
        example='--json \'{"name": "ada", "kind": "user", "grants": {"vision": "member"}}\' \'{url}/v1/accounts\'',
    ),
    Route(
        verb="DELETE",
        path="/v1/accounts/{kind}/{account}",
        operation="accounts.remove",
        handler=remove_account,
        answer=None,
        status=HTTPStatus.NO_CONTENT,
    ),
    Route(verb="GET", path="/v1/tokens", operation="tokens.list", handler=list_tokens, answer=Listed(IssuedToken)),
    Route(
        verb="POST",
        path="/v1/tokens",
        operation="tokens.create",
        handler=make_token,
        answer=MadeToken,
        status=HTTPStatus.CREATED,
        example='--json \'{"note": "nightly sweep", "ttl": 604800}\' \'{url}/v1/tokens\'',
    ),
    Route(
        verb="DELETE",
        path="/v1/tokens/{token}",
        operation="tokens.revoke",
        handler=revoke_token,
        answer=IssuedToken,
    ),
    Route(
        verb="GET",
        path="/v1/join-tokens",
        operation="join_tokens.list",
        handler=list_join_tokens,
        answer=Listed(IssuedJoinToken),
    ),
    Route(
        verb="POST",
        path="/v1/join-tokens",
        operation="join_tokens.create",
        handler=make_join_token,
        answer=MadeJoinToken,
        status=HTTPStatus.CREATED,
    ),
    Route(
        verb="DELETE",
        path="/v1/join-tokens/{token}",
        operation="join_tokens.revoke",
        handler=revoke_join_token,
        answer=IssuedJoinToken,
    ),
    Route(verb="GET", path="/v1/audit", operation="audit.list", handler=list_audit, answer=Listed(AuditEntry)),
)
