"""How a container ended, also where its engine was away at that time.

An engine learns of an end from containerd. When containerd is killed and the container ends before it is back, nobody
tells the engine, and the container counts as running for ever.
"""

import asyncio
import contextlib
import logging
from pathlib import Path

from agent.runtimes.docker.answers import ContainerState
from agent.runtimes.docker.engine import DockerEngine, EngineAwayError, EngineError

log = logging.getLogger(__name__)

FIRST_PROCESS_LOOK = 10.0
"""Seconds between two looks at whether the first process of a running container is still there."""

MADE_UP_EXIT_CODE = 255
"""What an engine says of a container that was gone when it came back. User code may end with it, too."""


async def end_told(engine: DockerEngine, container: str) -> None:
    """Wait until the engine tells that a container has ended; one that missed the end is made to look.

    Raises EngineAwayError when the engine goes.
    """
    waiting = asyncio.get_running_loop().create_task(engine.wait(container), name=f"end of {container[:12]}")
    pid = 0
    try:
        while not (await asyncio.wait([waiting], timeout=FIRST_PROCESS_LOOK))[0]:
            with contextlib.suppress(EngineAwayError, EngineError):
                pid = pid or (await engine.state(container, 0)).pid
                if pid and not await asyncio.to_thread(_runs, container, pid) and await engine.deserted(container):
                    log.warning("Docker missed the end of a container", extra={"container": container})
                    await engine.rouse(container)
        waiting.result()
    finally:
        waiting.cancel()


async def exit_code(engine: DockerEngine, state: ContainerState, *, stopped: bool) -> int | None:
    """The exit code of a container that has ended; None: the engine does not know it.

    `stopped`: whether the engine was told to stop it. One that had missed the end then makes up another.
    """
    sure = state.dated and state.exit_code != MADE_UP_EXIT_CODE
    if not engine.watches or (sure and not stopped):
        return state.exit_code
    seen = await engine.seen_end(state.id)
    return state.exit_code if seen is None and sure else seen


def _runs(container: str, pid: int) -> bool:
    """Whether a process is there and belongs to a container, as far as this machine's processes tell."""
    try:
        return container in Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return False
