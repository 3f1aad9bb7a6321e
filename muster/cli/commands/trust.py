"""Commands for those who let others in: users, accounts, tokens, projects, and the join tokens of nodes."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from muster.cli.commands import policies
from muster.cli.commands.tokens import Ttl, show, span_of
from muster.cli.context import answers, session_of
from muster.cli.options import Output, complete_nodes
from muster.cli.output.documents import Format
from muster.cli.output.screen import print_dim, say
from muster.domain.errors import InvalidJobError
from muster.domain.fleet.access import Access, AccountKind
from muster.domain.jobs.job import DEFAULT_PROJECT

if TYPE_CHECKING:
    pass

users = typer.Typer(help="People whom the coordinator knows.", no_args_is_help=True)
accounts = typer.Typer(help="Service accounts: programs whom the coordinator knows.", no_args_is_help=True)
projects = typer.Typer(help="Projects, and who may do what in them.", no_args_is_help=True)
join_tokens = typer.Typer(help="Tokens with which nodes join.", no_args_is_help=True)

AccessOf: TypeAlias = Annotated[Access, typer.Option(help="What the account may do.")]
ProjectOf: TypeAlias = Annotated[
    str, typer.Option(help="In which project; `*`: in all, and with nodes, accounts and the audit log.")
]
Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME")]


@users.command("add")
@answers
async def add_user(
    context: typer.Context, name: Name, *, access: AccessOf = Access.MEMBER, project: ProjectOf = DEFAULT_PROJECT
) -> None:
    """Make a person known; `muster tokens create --for NAME` then makes a token to hand over."""
    await _add(context, name, AccountKind.USER, {project: access})


@users.command("list")
@answers
async def list_users(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List people."""
    await _list(context, AccountKind.USER, output)


@users.command("remove")
@answers
async def remove_user(context: typer.Context, name: Name) -> None:
    """Forget a person and the tokens."""
    await _remove(context, name, AccountKind.USER)


@accounts.command("add")
@answers
async def add_service(
    context: typer.Context, name: Name, *, access: AccessOf = Access.MEMBER, project: ProjectOf = DEFAULT_PROJECT
) -> None:
    """Make a program known; `muster tokens create --for NAME` then makes its token."""
    await _add(context, name, AccountKind.SERVICE, {project: access})


@accounts.command("list")
@answers
async def list_services(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List service accounts."""
    await _list(context, AccountKind.SERVICE, output)


@accounts.command("remove")
@answers
async def remove_service(context: typer.Context, name: Name) -> None:
    """Forget a service account and its tokens."""
    await _remove(context, name, AccountKind.SERVICE)


@projects.command("add")
@answers
async def add_project(context: typer.Context, name: Name) -> None:
    """Make a project."""
    async with session_of(context).client() as client:
        project = await client.projects.add(name)
    say(f"project {project.name} is there; `muster projects grant {project.name} ACCOUNT` lets somebody in")


projects.command("allow")(policies.allow)


@projects.command("list")
@answers
async def list_projects(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List the projects that you have access to."""
    async with session_of(context).client() as client:
        found = await client.projects.list()
    from muster.cli.output.trust import projects_table  # noqa: PLC0415 - Rich

    show(found, output, projects_table(found))


@projects.command("grant")
@answers
async def grant(
    context: typer.Context,
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="`*` for all.")],
    account: Annotated[str, typer.Argument(metavar="ACCOUNT")],
    *,
    access: AccessOf = Access.MEMBER,
) -> None:
    """Give an account access to a project, in place of what it had there."""
    await _grant(context, account, project, access)


@projects.command("revoke")
@answers
async def revoke_grant(
    context: typer.Context,
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="`*` for all.")],
    account: Annotated[str, typer.Argument(metavar="ACCOUNT")],
) -> None:
    """Take an account's access to a project away."""
    await _grant(context, account, project, None)


@join_tokens.command("create")
@answers
async def create_join_token(
    context: typer.Context,
    *,
    ttl: Ttl = "1h",
    uses: Annotated[int, typer.Option(min=1, help="How many nodes may join with it.")] = 1,
    pool: Annotated[str | None, typer.Option(help="The nodes get the label pool=POOL.")] = None,
    label: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="The nodes get this label; may be repeated.")
    ] = None,
) -> None:
    """Make a token with which nodes join, and print it, this once."""
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
    """List join tokens without their secrets."""
    async with session_of(context).client() as client:
        found = await client.join_tokens.list()
    from muster.cli.output.trust import join_tokens_table  # noqa: PLC0415 - Rich

    show(found, output, join_tokens_table(found, datetime.now(UTC)))


@join_tokens.command("revoke")
@answers
async def revoke_join_token(
    context: typer.Context, token: Annotated[str, typer.Argument(metavar="ID", help="As `list` shows it.")]
) -> None:
    """Let nobody join with a token any more; who has joined stays."""
    async with session_of(context).client() as client:
        revoked = await client.join_tokens.revoke(token)
    say(f"join token {revoked.id} counts no more")


@answers
async def enrolled(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List the nodes that have joined, and with which token."""
    async with session_of(context).client() as client:
        found = await client.nodes.enrolled()
    from muster.cli.output.trust import enrolled_nodes_table  # noqa: PLC0415 - Rich

    show(found, output, enrolled_nodes_table(found))


@answers
async def revoke_node(
    context: typer.Context,
    node: Annotated[str, typer.Argument(metavar="NODE", autocompletion=complete_nodes)],
) -> None:
    """Send a node away: its certificate counts no more, and its connection ends at once."""
    async with session_of(context).client() as client:
        revoked = await client.nodes.revoke(node)
    say(f"node {revoked.name} was sent away; with a new join token it may come back")


async def _add(context: typer.Context, name: str, kind: AccountKind, grants: Mapping[str, Access]) -> None:
    async with session_of(context).client() as client:
        account = await client.accounts.add(name, kind, grants)
    say(f"{account.name} is known; `muster tokens create --for {account.name}` makes a token")


async def _list(context: typer.Context, kind: AccountKind, output: Format) -> None:
    async with session_of(context).client() as client:
        found = await client.accounts.list(kind)
    from muster.cli.output.trust import accounts_table  # noqa: PLC0415 - Rich

    show(found, output, accounts_table(found))


async def _remove(context: typer.Context, name: str, kind: AccountKind) -> None:
    async with session_of(context).client() as client:
        await client.accounts.remove(name, kind)
    say(f"{name} is forgotten")


async def _grant(context: typer.Context, account: str, project: str, access: Access | None) -> None:
    async with session_of(context).client() as client:
        changed = await client.accounts.grant(account, project, access)
    from muster.cli.output.trust import grants_text  # noqa: PLC0415 - Rich

    say(f"{changed.name}: {grants_text(changed.grants)}")


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise InvalidJobError(f"{text!r} is no label like rack=a7")
    return key, value
