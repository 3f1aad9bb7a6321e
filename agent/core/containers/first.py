"""What user code has in front of it in a container: a program that starts it, and notes how it ended.

An engine that is killed as a container ends can lose its exit code. The note lies in a file of the node, so that it is
there whatever becomes of engine and containerd.
"""

from collections.abc import Sequence
from typing import cast

from agent.core.containers.secrets import ENV_PROGRAM
from agent.core.containers.spec import Body
from agent.core.launching.launch import CONTAINER_FIRST
from muster.domain.gangs.roster import Json

FIRST_PROGRAM = "muster-first"
EXIT_NOTE = "exit"
"""File beside the program."""

NO_NOTE = b"   \n"
"""What is in the file before user code has ended. A note is as long, so that a full disk has space for it."""

_HIGHEST = 255


def behind_first(body: Body, arguments: Sequence[str], paths: Sequence[str]) -> Body:
    """The request with user code behind the program that notes its exit code.

    User code is found at the first of `paths` that is there, unless the request has another program in front of it.
    """
    if body.get("Entrypoint") == [ENV_PROGRAM]:
        paths = (ENV_PROGRAM,)
        arguments = (ENV_PROGRAM, *cast("list[str]", body["Cmd"]))
    command: list[Json] = [f"{CONTAINER_FIRST}/{EXIT_NOTE}", str(len(paths)), *paths, *arguments]
    return {**body, "Entrypoint": [f"{CONTAINER_FIRST}/{FIRST_PROGRAM}"], "Cmd": command}


def without_first(command: Sequence[str]) -> tuple[str, ...]:
    """The command of a container less that program, if it is there: paths of user code, its name and its arguments."""
    if tuple(command[:1]) != (f"{CONTAINER_FIRST}/{FIRST_PROGRAM}",):
        return tuple(command)
    return tuple(command[3:])


def noted_exit_code(note: bytes) -> int | None:
    """The exit code of user code by its note; None: there is none, or nothing that the program would write."""
    text = note.strip()
    if not text.isdigit() or int(text) > _HIGHEST:
        return None
    return int(text)
