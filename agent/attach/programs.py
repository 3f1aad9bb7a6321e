"""The programs with which user code runs commands in other executions of its gang."""

import platform
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from agent.core.door.names import CALLERS, INSIDE
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
