"""What secrets add to the request for a container: mounts of memory, and a program in front of user code.

Docker keeps what it is told of a container's environment on disk and shows it to whoever may ask. So variables that are
secrets are read from a mounted file by a program that then becomes user code.
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import cast

from agent.core.containers.spec import Body
from muster.domain.gangs.roster import Json

ENV_PROGRAM = "/muster-secret-env"
ENV_DIRECTORY = "/muster/secret-env"
"""Where the program finds the variables."""


def with_files(body: Body, directories: Mapping[str, PurePath]) -> Body:
    """The request with directories of the node mounted, by their paths in the container; read-only."""
    config = cast("Body", body["HostConfig"])
    mounts = cast("list[Json]", config["Mounts"])
    added: list[Json] = [
        {"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": True}
        for target, source in directories.items()
    ]
    return {**body, "HostConfig": {**config, "Mounts": [*mounts, *added]}}


def with_variables(body: Body, variables: str, arguments: Sequence[str], paths: Sequence[str]) -> Body:
    """The request with user code behind the program that adds what the file `variables` in its directory says.

    User code is found at the first of `paths` that is there.
    """
    file = f"{ENV_DIRECTORY}/{variables}"
    command: list[Json] = [file, str(len(paths)), *paths, *arguments]
    return {**body, "Entrypoint": [ENV_PROGRAM], "Cmd": command}


def beside_with_variables(variables: str, command: Sequence[str]) -> tuple[str, ...]:
    """A command that is started in the running container, behind the program that adds what the file says."""
    return (ENV_PROGRAM, f"{ENV_DIRECTORY}/{variables}", "1", command[0], *command)


def is_behind_variables(entrypoint: Sequence[str]) -> bool:
    """Whether user code of a container is behind that program, as its entrypoint tells."""
    return tuple(entrypoint) == (ENV_PROGRAM,)


def uid_of(user: str, passwd: bytes) -> int | None:
    """The number of the user of a container, by Docker's rules; None: the image does not tell it here."""
    name = user.partition(":")[0]
    if not name or name.isdecimal():
        return int(name or 0)
    for line in passwd.decode(errors="replace").splitlines():
        known, _, number = [*line.split(":"), "", "", ""][:3]
        if known == name and number.isdecimal():
            return int(number)
    return None
