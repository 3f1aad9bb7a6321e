"""Commands about projects: which there are, who may do what in them, and what they are opened for."""

import sys
from dataclasses import replace
from posixpath import normpath
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from muster.cli.commands.tokens import show
from muster.cli.commands.trust import AccessOf
from muster.cli.context import answers, session_of
from muster.cli.options import Output
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say, say_lines, screen
from muster.domain.errors import InvalidJobError
from muster.domain.fleet.access import Access, Permissions
from muster.domain.fleet.attach_permission import Attachers, AttachPermission
from muster.domain.jobs.job import MOST_PIDS
from muster.domain.quantity import size_text
from muster.domain.visible_text import visible

if TYPE_CHECKING:
    from muster.domain.fleet.access import Project

projects = typer.Typer(
    help="""Make and remove projects, and say who may do what in them.

Examples:
  muster projects
  muster projects grant vision ada --access member
""",
    no_args_is_help=True,
)
ProjectName: TypeAlias = Annotated[str, typer.Argument(metavar="PROJECT", help="Name of the project.")]


@projects.command("add")
@answers
async def add_project(
    context: typer.Context, name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the project.")]
) -> None:
    """Make a project.

    Examples:
      muster projects add vision
      muster projects add vision; muster projects grant vision ada
    """
    async with session_of(context).client() as client:
        project = await client.projects.add(name)
    say(f"project {project.name} is there; `muster projects grant {project.name} ACCOUNT` lets somebody in")


@projects.command("allow")
@answers
async def allow(
    context: typer.Context,
    project: ProjectName,
    *,
    capability: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="Linux capability that containers may ask for: `SYS_PTRACE`; may be repeated."
        ),
    ] = None,
    privileged: Annotated[
        bool, typer.Option("--privileged", help="Privileged containers, which may do all that root of the node may.")
    ] = False,
    gain_privileges: Annotated[
        bool, typer.Option("--gain-privileges", help="Programs that gain privileges, as `sudo` does.")
    ] = False,
    any_user: Annotated[
        bool, typer.Option("--any-user", help="Any user in containers, also root and the one that the image names.")
    ] = False,
    host_path: Annotated[
        list[str] | None,
        typer.Option(
            metavar="DIR", help="Mounts from below this directory, on nodes that allow it too; may be repeated."
        ),
    ] = None,
    pids: Annotated[
        int | None,
        typer.Option(min=1, max=MOST_PIDS, metavar="COUNT", help="Most processes and threads in a container."),
    ] = None,
    attach: Annotated[
        Attachers | None,
        typer.Option(help="Accounts that may attach to running executions; `owner`: the job's own, and operators."),
    ] = None,
    commands: Annotated[
        bool | None, typer.Option("--commands/--no-commands", help="Commands and shells in running executions.")
    ] = None,
    connections: Annotated[
        bool | None, typer.Option("--connections/--no-connections", help="Connections to ports of running executions.")
    ] = None,
    files: Annotated[
        bool | None, typer.Option("--files/--no-files", help="Files of running executions, to be read and written.")
    ] = None,
    nothing: Annotated[bool, typer.Option("--nothing", help="Take away first what was allowed before.")] = False,
) -> None:
    """Allow a project more than the default, and say who may attach.

    Without options, what is allowed is shown. Options add to what was allowed before. Jobs that were accepted are not
    affected, but attaching to them is.

    Examples:
      muster projects allow vision --capability SYS_PTRACE --host-path /data
      muster projects allow vision --attach members --no-files
    """
    from muster.cli.output.trust import permissions_text

    wished = Permissions(
        capabilities=frozenset(name.upper().removeprefix("CAP_") for name in capability or ()),
        privileged=privileged,
        gain_privileges=gain_privileges,
        any_user=any_user,
        host_paths=tuple(map(_directory, host_path or ())),
        pids=pids,
    )
    ways = {"commands": commands, "connections": connections, "files": files}
    chosen = {way: opened for way, opened in ways.items() if opened is not None}
    async with session_of(context).client() as client:
        found = await client.projects.get(project)
        if nothing or wished != Permissions() or attach is not None or chosen:
            before = Permissions() if nothing else found.permissions
            attaching = replace(before.attach, who=attach or before.attach.who, **chosen)
            found = await client.projects.allow(project, _both(before, wished, attaching))
    say(f"{found.name}: {permissions_text(found.permissions)}")


@projects.command("list")
@answers
async def list_projects(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List the projects that you have access to, and what they hold.

    Numbers are GPUs.

    Examples:
      muster projects list
      muster projects list -o yaml
    """
    async with session_of(context).client() as client:
        found = await client.projects.list()
        units = {each.unit.name: each for each in await client.projects.quotas()} if output.for_people else {}
    from muster.cli.commands.sharing.quota_tables import shared_projects_table

    show(found, output, shared_projects_table(found, units))


@projects.command("show")
@answers
async def show_project(
    context: typer.Context,
    project: ProjectName,
    *,
    output: Output = Format.TABLE,
) -> None:
    """Show a project, and what it is opened for.

    Examples:
      muster projects show vision
      muster projects show vision -o json
    """
    async with session_of(context).client() as client:
        found = await client.projects.get(project)
    if not output.for_people:
        say_lines(text_of(found, output))
        return
    from muster.cli.output.trust import project_facts

    screen().print(project_facts(found))


@projects.command("storage")
@answers
async def storage(
    context: typer.Context,
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="Name of the project whose limit is changed.")] = "",
    *,
    limit: Annotated[str, typer.Option(metavar="SIZE", help="Most that the project may keep, such as `200Gi`.")] = "",
    output: Output = Format.TABLE,
) -> None:
    """Show what jobs of each project keep in the fleet's depot, or limit it.

    A file that several projects have sent counts for each of them, and lies there once. What no job names goes
    a day after it was sent. A lower limit removes nothing.

    Examples:
      muster projects storage
      muster projects storage vision --limit 200Gi
    """
    if bool(project) != bool(limit):
        raise InvalidJobError("name both or none: `muster projects storage PROJECT --limit SIZE` changes a limit")
    async with session_of(context).client() as client:
        if limit:
            changed = await client.projects.limit_storage(project, _bytes(limit))
            say(f"{changed.name} may keep {size_text(changed.storage)} in the depot")
            return
        use = await client.data.storage()
    from muster.cli.commands.sharing.storage_table import depot_sentence, storage_table

    if not output.for_people:
        say_lines(text_of(use, output))
        return
    screen().print(storage_table(use))
    say(depot_sentence(use))


@projects.command("grant")
@answers
async def grant(
    context: typer.Context,
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="Name of the project; `*` for all.")],
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="Name of the person or service account.")],
    *,
    access: AccessOf = Access.MEMBER,
) -> None:
    """Give an account access to a project, in place of what it had.

    Examples:
      muster projects grant vision ada
      muster projects grant vision grace --access admin
    """
    await _grant(context, account, project, access)


@projects.command("revoke")
@answers
async def revoke_grant(
    context: typer.Context,
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="Name of the project; `*` for all.")],
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="Name of the person or service account.")],
) -> None:
    """Take the access of an account to a project away.

    Examples:
      muster projects revoke vision ada
      muster projects revoke '*' grace
    """
    await _grant(context, account, project, None)


@projects.command("remove")
@answers
async def remove_project(
    context: typer.Context,
    project: ProjectName,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Remove a project that nothing uses any more.

    Jobs that have not ended keep it, and so do secrets, access of accounts, and tokens. The refusal says which, and
    what to do about each. Jobs that have ended stay. Whoever has access to every project still sees them.

    Examples:
      muster projects remove vision
      muster projects remove vision --yes -o json
    """
    async with session_of(context).client() as client:
        if not yes:
            _ask(await client.projects.get(project))
        gone = await client.projects.remove(project)
    if output.for_people:
        say(f"project {gone.name} is removed")
    else:
        say_lines(text_of(gone, output))


def _ask(project: "Project") -> None:
    """Say what goes, and ask whether it may."""
    if not sys.stdin.isatty():
        raise InvalidJobError(f"nobody is there to be asked whether to remove project {project.name}; say --yes")
    from muster.cli.output.trust import permissions_text

    say(f"project {project.name} goes, which is opened for {permissions_text(project.permissions)}", err=True)
    say("jobs of it that have ended stay; only whoever has access to every project still sees them", err=True)
    typer.confirm(f"Remove project {visible(project.name)}?", abort=True, err=True)


async def _grant(context: typer.Context, account: str, project: str, access: Access | None) -> None:
    async with session_of(context).client() as client:
        changed = await client.accounts.grant(account, project, access)
    from muster.cli.output.trust import grants_text

    say(f"{changed.name}: {grants_text(changed.grants)}")


def _both(had: Permissions, more: Permissions, attaching: AttachPermission) -> Permissions:
    return replace(
        more,
        capabilities=had.capabilities | more.capabilities,
        privileged=had.privileged or more.privileged,
        gain_privileges=had.gain_privileges or more.gain_privileges,
        any_user=had.any_user or more.any_user,
        host_paths=tuple(dict.fromkeys(had.host_paths + more.host_paths)),
        pids=more.pids or had.pids,
        attach=attaching,
    )


def _bytes(text: str) -> int:
    from muster.jobfile.errors import FieldError
    from muster.jobfile.quantity import parse_memory

    try:
        return parse_memory(text)
    except FieldError as error:
        raise InvalidJobError(f"--limit {error}") from None


def _directory(path: str) -> str:
    if not path.startswith("/"):
        raise InvalidJobError(f"{path!r} is no absolute path of a node's directory")
    return normpath(path)
