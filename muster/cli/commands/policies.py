"""What the containers of a project may do beyond the default, for admins."""

from dataclasses import replace
from posixpath import normpath
from typing import Annotated

import typer

from muster.cli.context import answers, session_of
from muster.cli.output.screen import say
from muster.domain.errors import InvalidJobError, UnknownNameError
from muster.domain.fleet.access import Policy
from muster.domain.jobs.job import MOST_PIDS


@answers
async def allow(  # noqa: PLR0913 - one for each option
    context: typer.Context,
    project: Annotated[str, typer.Argument(metavar="PROJECT")],
    *,
    capability: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="May be asked for, like SYS_PTRACE; may be repeated.")
    ] = None,
    privileged: Annotated[bool, typer.Option("--privileged", help="Everything that root of the node may.")] = False,
    gain_privileges: Annotated[
        bool, typer.Option("--gain-privileges", help="Programs may gain privileges, as `sudo` does.")
    ] = False,
    any_user: Annotated[
        bool, typer.Option("--any-user", help="Any user, root and the one that the image names, too.")
    ] = False,
    host_path: Annotated[
        list[str] | None,
        typer.Option(metavar="DIR", help="Mounts from below it, on nodes that let jobs mount it; may be repeated."),
    ] = None,
    pids: Annotated[
        int | None, typer.Option(min=1, max=MOST_PIDS, help="Up to so many processes and threads in a container.")
    ] = None,
    nothing: Annotated[bool, typer.Option("--nothing", help="First take away what it was opened for before.")] = False,
) -> None:
    """Open a project for what its job files ask for; without options, show what it is opened for.

    What is opened adds to what was. Jobs that were accepted are not affected.
    """
    from muster.cli.output.trust import policy_text  # noqa: PLC0415 - Rich

    wished = Policy(
        capabilities=frozenset(name.upper().removeprefix("CAP_") for name in capability or ()),
        privileged=privileged,
        gain_privileges=gain_privileges,
        any_user=any_user,
        host_paths=tuple(map(_directory, host_path or ())),
        pids=pids,
    )
    async with session_of(context).client() as client:
        found = next((each for each in await client.projects.list() if each.name == project), None)
        if found is None:
            raise UnknownNameError(f"there is no project {project!r}; `muster projects list` shows yours")
        if nothing or wished != Policy():
            found = await client.projects.set_policy(project, wished if nothing else _both(found.policy, wished))
    say(f"{found.name}: {policy_text(found.policy)}")


def _both(had: Policy, more: Policy) -> Policy:
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
