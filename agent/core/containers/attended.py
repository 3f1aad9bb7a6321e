"""What user code has in front of it in a container where people talk to it: the parent with its terminal or input.

The parent stands before everything else, as it must see the end of all that prints.
"""

from collections.abc import Sequence
from typing import cast

from agent.core.containers.spec import Body
from agent.core.door.names import INSIDE, TICKET_VARIABLE
from agent.core.launching.launch import CONTAINER_CONFIG
from muster.domain.gangs.plan import LAUNCH_PROGRAMS, AttendedStart
from muster.domain.gangs.roster import Json

CONTAINER_INSIDE = f"{CONTAINER_CONFIG}/{LAUNCH_PROGRAMS}/{INSIDE}"
"""Where a container sees the companion's program, once it is there."""

_WORDS_BEFORE = 5
"""Words of the parent, with its own path: those that follow are a path, and then what is started as it."""


def behind_parent(body: Body, attended: AttendedStart, door: str) -> Body:
    """The request with the parent in front of a program that it names by its path; `door`: where the parent goes."""
    (path, *words), arguments = cast("list[str]", body["Entrypoint"]), cast("list[str]", body["Cmd"])
    command: list[Json] = ["main", door, attended.streams.value, path, path, *words, *arguments]
    env = cast("list[Json]", body["Env"])
    ticket = f"{TICKET_VARIABLE}={attended.ticket}"
    return {**body, "Entrypoint": [CONTAINER_INSIDE], "Cmd": command, "Env": [*env, ticket]}


def without_parent(command: Sequence[str]) -> tuple[str, ...]:
    """The command of a container less the parent, if it is there."""
    if tuple(command[:2]) != (CONTAINER_INSIDE, "main"):
        return tuple(command)
    return tuple(command[_WORDS_BEFORE:])
