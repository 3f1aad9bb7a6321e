"""Commands for those who let others in: users, service accounts, and the join tokens of nodes."""

from collections.abc import Mapping
from datetime import UTC, datetime
from operator import attrgetter
from typing import Annotated, TypeAlias

import typer

from muster.cli.commands.tokens import Ttl, show, span_of
from muster.cli.context import answers, session_of
from muster.cli.options import Output, complete_nodes
from muster.cli.output.documents import Format
from muster.cli.output.screen import print_dim, say
from muster.domain.errors import InvalidJobError
from muster.domain.fleet.access import Access, AccountKind
from muster.domain.jobs.job import DEFAULT_PROJECT

users = typer.Typer(
    help="""Add, list and remove people.

Examples:
  muster users
  muster users add ada --access member --project vision
""",
    no_args_is_help=True,
)
accounts = typer.Typer(
    help="""Add, list and remove service accounts, which programs use.

Examples:
  muster accounts
  muster accounts add ci --access member --project vision
""",
    no_args_is_help=True,
)
join_tokens = typer.Typer(
    help="""Make, list and revoke tokens with which machines join as nodes.

Examples:
  muster nodes token create --uses 10 --ttl 2h
  muster nodes token list
""",
    no_args_is_help=True,
)

AccessOf: TypeAlias = Annotated[Access, typer.Option(help="What the account may do.")]
ProjectOf: TypeAlias = Annotated[
    str,
    typer.Option(
        help="Project in which the account may do that; `*`: in all, and with nodes, accounts and the audit log."
    ),
]
Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="Name of the account.")]


@users.command("add")
@answers
async def add_user(
    context: typer.Context, name: Name, *, access: AccessOf = Access.MEMBER, project: ProjectOf = DEFAULT_PROJECT
) -> None:
    """Add a person; `muster tokens create --for NAME` makes a token.

    Examples:
      muster users add ada --project vision
      muster users add grace --access admin --project '*'
    """
    await _add(context, name, AccountKind.USER, {project: access})


@users.command("list")
@answers
async def list_users(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List people and what they may do.

    Examples:
      muster users list
      muster users list -o json
    """
    await _list(context, output, AccountKind.USER)


@users.command("remove")
@answers
async def remove_user(context: typer.Context, name: Name) -> None:
    """Remove a person with all tokens of the account.

    Examples:
      muster users remove ada
      muster users list; muster users remove ada
    """
    await _remove(context, name, AccountKind.USER)


@accounts.command("add")
@answers
async def add_service(
    context: typer.Context,
    name: Name,
    *,
    access: AccessOf = Access.MEMBER,
    project: ProjectOf = DEFAULT_PROJECT,
    console: Annotated[
        bool, typer.Option("--console", help="Account of a muster-console, which gets keys of subscriptions.")
    ] = False,
) -> None:
    """Add a service account; `muster tokens create --for NAME` makes a token.

    Examples:
      muster accounts add ci --project vision
      muster accounts add console --access operator --project '*' --console
    """
    await _add(context, name, AccountKind.CONSOLE if console else AccountKind.SERVICE, {project: access})


@accounts.command("list")
@answers
async def list_services(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List service accounts and consoles, and what they may do.

    Examples:
      muster accounts list
      muster accounts list -o json
    """
    await _list(context, output, AccountKind.SERVICE, AccountKind.CONSOLE)


@accounts.command("remove")
@answers
async def remove_service(context: typer.Context, name: Name) -> None:
    """Remove a service account, or that of a console, with all its tokens.

    Examples:
      muster accounts remove ci
      muster accounts list; muster accounts remove ci
    """
    async with session_of(context).client() as client:
        consoles = {each.name for each in await client.accounts.list(AccountKind.CONSOLE)}
    await _remove(context, name, AccountKind.CONSOLE if name in consoles else AccountKind.SERVICE)


@join_tokens.command("create")
@answers
async def create_join_token(
    context: typer.Context,
    *,
    ttl: Ttl = "1h",
    uses: Annotated[
        int, typer.Option(min=1, metavar="COUNT", help="Number of machines that may join with the token.")
    ] = 1,
    pool: Annotated[str | None, typer.Option(help="Pool of the nodes: they get the label pool=POOL.")] = None,
    label: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Label that the nodes get; may be repeated.")
    ] = None,
) -> None:
    """Make a token with which machines join as nodes, and print it once.

    Examples:
      muster nodes token create
      muster nodes token create --uses 10 --ttl 2h --pool h100
    """
    labels = dict(map(_label, label or ())) | ({"pool": pool} if pool else {})
    async with session_of(context).client() as client:
        secret, token = await client.join_tokens.create(ttl=span_of(ttl), uses=uses, labels=labels)
    say(secret)
    times = "one node" if token.uses_left == 1 else f"{token.uses_left} nodes"
    print_dim(
        f"join token {token.id} for {times}; it is not shown again\n"
        f"on the node: muster-agent --coordinator {client.address} --join-file FILE",
    )


@join_tokens.command("list")
@answers
async def list_join_tokens(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List join tokens; secrets are not shown.

    Examples:
      muster nodes token list
      muster nodes token list -o json
    """
    async with session_of(context).client() as client:
        found = await client.join_tokens.list()
    from muster.cli.output.trust import join_tokens_table

    show(found, output, join_tokens_table(found, datetime.now(UTC)))


@join_tokens.command("revoke")
@answers
async def revoke_join_token(
    context: typer.Context,
    token: Annotated[str, typer.Argument(metavar="ID", help="Id of the token, which `muster nodes token list` shows.")],
) -> None:
    """Revoke a join token; nodes that have joined with it stay.

    Examples:
      muster nodes token revoke k3m8
      muster nodes token list; muster nodes token revoke k3m8
    """
    async with session_of(context).client() as client:
        revoked = await client.join_tokens.revoke(token)
    say(f"join token {revoked.id} counts no more")


@answers
async def enrolled(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List the nodes that have joined, and with which token.

    Examples:
      muster nodes joined
      muster nodes joined -o json
    """
    async with session_of(context).client() as client:
        found = await client.nodes.enrolled()
    from muster.cli.output.trust import enrolled_nodes_table

    show(found, output, enrolled_nodes_table(found))


@answers
async def revoke_node(
    context: typer.Context,
    node: Annotated[str, typer.Argument(metavar="NODE", help="Name of the node.", autocompletion=complete_nodes)],
) -> None:
    """Shut a node out: its certificate is no longer valid.

    Its connection ends at once. With a new join token it may come back.

    Examples:
      muster nodes revoke node-7
      muster nodes revoke node-7; muster nodes remove node-7
    """
    async with session_of(context).client() as client:
        revoked = await client.nodes.revoke(node)
    say(f"node {revoked.name} is shut out; with a new join token it may come back")


async def _add(context: typer.Context, name: str, kind: AccountKind, grants: Mapping[str, Access]) -> None:
    async with session_of(context).client() as client:
        account = await client.accounts.add(name, kind, grants)
    say(f"{account.name} is known; `muster tokens create --for {account.name}` makes a token")


async def _list(context: typer.Context, output: Format, *kinds: AccountKind) -> None:
    async with session_of(context).client() as client:
        found = sorted([each for kind in kinds for each in await client.accounts.list(kind)], key=attrgetter("name"))
    from muster.cli.output.trust import accounts_table

    show(found, output, accounts_table(found))


async def _remove(context: typer.Context, name: str, kind: AccountKind) -> None:
    async with session_of(context).client() as client:
        await client.accounts.remove(name, kind)
    say(f"{name} is forgotten")


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise InvalidJobError(f"{text!r} is no label like rack=a7")
    return key, value
