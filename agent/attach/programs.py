"""The programs that Muster brings into executions: the companion, and those with which user code runs commands
elsewhere in its gang.
"""

import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from agent.core.door.names import CALLERS, INSIDE
from agent.executions.files import EXECUTABLE
from agent.executions.layout import ExecutionDirectory
from agent.executions.whole_file import write_whole
from muster.domain.jobs.failure import ExecutionError, FailureKind

_FOLDER = Path(__file__).parents[1] / "runtimes" / "inside_program"


@cache
def gang_programs(architecture: str = platform.machine()) -> Mapping[str, bytes]:
    """Name of each program → its content. Raises ExecutionError on a processor for which there are none."""
    try:
        content = (_FOLDER / f"{INSIDE}-{architecture}").read_bytes()
    except FileNotFoundError:
        message = f"no commands between executions on {architecture}: Muster brings programs for x86_64 and aarch64"
        raise ExecutionError(FailureKind.INVALID_OPTION, message) from None
    return dict.fromkeys((INSIDE, *CALLERS), content)


def bring_companion(directory: ExecutionDirectory) -> None:
    """Have the companion's program in the directory of an execution that may run already.

    One of an earlier agent is replaced, and goes on where it runs. Raises OSError and ExecutionError.
    """
    content, path = gang_programs()[INSIDE], directory.programs / INSIDE
    directory.programs.mkdir(exist_ok=True)
    directory.programs.chmod(EXECUTABLE)
    if not path.is_file() or path.read_bytes() != content:
        write_whole(path, content, EXECUTABLE)
