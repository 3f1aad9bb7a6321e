"""Where the files of a job come to lie in a container: never in a directory that the node lends it.

The engine writes them as root, and clears away what is there. User code may less in what is mounted, so that a job must
not have done by the engine what it may not do itself.
"""

import posixpath
from collections.abc import Iterable
from pathlib import PurePosixPath

from agent.runtimes.docker.engine.files import EngineFiles
from muster.domain.jobs.failure import ExecutionError, FailureKind


async def refuse_lent(engine_files: EngineFiles, container: str, files: Iterable[str], targets: Iterable[str]) -> None:
    """Raise ExecutionError for a file in a mount, or in place of one, whatever links the image has on the way."""
    lent = {target: await resolved(engine_files, container, target) for target in targets}
    for file in files if lent else ():
        directory, name = posixpath.split(file)
        place = await resolved(engine_files, container, directory) / name
        for target, mount in lent.items():
            if place.is_relative_to(mount) or mount.is_relative_to(place):
                message = f"files: {file} would lie in the mount {target}; let the job write it there itself"
                raise ExecutionError(FailureKind.INVALID_OPTION, message)


async def resolved(engine_files: EngineFiles, container: str, path: str) -> PurePosixPath:
    """A path without links; what is not there is as it is written."""
    place = PurePosixPath("/")
    for part in PurePosixPath(path).parts[1:]:
        place /= part
        found = await engine_files.program(container, str(place))
        if found is not None and found.link is not None:
            place = PurePosixPath("/", found.link.lstrip("/"))
    return place
