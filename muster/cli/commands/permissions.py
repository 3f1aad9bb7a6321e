"""What the containers of a project may do beyond the default, for admins."""

from dataclasses import replace
from posixpath import normpath
from typing import Annotated

import typer

from muster.cli.context import answers, session_of
from muster.cli.output.screen import say
from muster.domain.errors import InvalidJobError
from muster.domain.fleet.access import Permissions
from muster.domain.jobs.job import MOST_PIDS


@answers
async def allow(
    context: typer.Context,
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="Name of the project.")],
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
    nothing: Annotated[bool, typer.Option("--nothing", help="Take away first what was allowed before.")] = False,
) -> None:
    """Allow the containers of a project more than the default.

    Without options, what is allowed is shown. Options add to what was allowed before. Jobs that were accepted are not
    affected.

    Examples:
      muster projects allow vision
      muster projects allow vision --capability SYS_PTRACE --host-path /data
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
    async with session_of(context).client() as client:
        found = await client.projects.get(project)
        if nothing or wished != Permissions():
            found = await client.projects.allow(project, wished if nothing else _both(found.permissions, wished))
    say(f"{found.name}: {permissions_text(found.permissions)}")


def _both(had: Permissions, more: Permissions) -> Permissions:
    return replace(
        more,
        capabilities=had.capabilities | more.capabilities,
        privileged=had.privileged or more.privileged,
        gain_privileges=had.gain_privileges or more.gain_privileges,
        any_user=had.any_user or more.any_user,
        host_paths=tuple(dict.fromkeys(had.host_paths + more.host_paths)),
        pids=more.pids or had.pids,
    )


def _directory(path: str) -> str:
    if not path.startswith("/"):
        raise InvalidJobError(f"{path!r} is no absolute path of a node's directory")
    return normpath(path)
