"""How a container ended, also where its engine was away at that time.

An engine learns of an end from containerd. When containerd is killed and the container ends before it is back, nobody
tells the engine, and the container counts as running for ever. An engine that is killed after it has made containerd
forget a container, and before it has noted how that ended, has lost the exit code: the next one makes one up.
"""

import asyncio
import contextlib
import logging
import math
from pathlib import Path

from agent.runtimes.docker.answers import ContainerState
from agent.runtimes.docker.containers import as_failures
from agent.runtimes.docker.engine.connection import EngineAwayError, EngineError, PingAnswer
from agent.runtimes.docker.engine.containers import EngineContainers
from agent.runtimes.docker.engine.engine import DockerEngine
from muster.domain.jobs.failure import ExecutionError, Exit, FailureKind

log = logging.getLogger(__name__)

FIRST_PROCESS_LOOK = 10.0
"""Seconds between two looks at whether the first process of a running container is still there."""

MADE_UP_EXIT_CODES = frozenset({0, 255})
"""What engines say of a container that was gone when they came back: 255 where containerd has forgotten what ran in it,
and 0 where it has forgotten the container too (20.10), or either (23.0 to 24.0.2). User code may end with both, too.
"""

KILLED_EXIT_CODE = 137
"""Exit code of what SIGKILL ended."""


class ContainerEnd:
    """The end of one container: waited for, and judged by what this agent did to it."""

    def __init__(self, engine: DockerEngine, look_every: float = FIRST_PROCESS_LOOK) -> None:
        """`look_every`: seconds between two looks at whether the engine has missed the end."""
        self._engine = engine
        self._look_every = look_every
        self._runs = False
        """Whether the engine has started it for this agent, so that nobody need ask whether it runs."""
        self._told = False
        """Whether the engine was asked to wait while the container ran, and told of its end."""
        self._roused = False
        """Whether the engine had missed the end, and was made to look."""
        self._stopping = False
        self._removing = False

    def expect_running(self) -> None:
        """Know that the engine has just started it."""
        self._runs = True

    def expect_stop(self) -> None:
        """Know that the engine is told to stop it."""
        self._stopping = True

    def expect_removal(self) -> None:
        """Know that it is removed, perhaps before anybody can ask how it ended."""
        self._removing = True

    async def outcome(self, container: str) -> Exit | ExecutionError:
        """Wait for the end; how user code ended, or why that is not its own end. Raises ExecutionError."""
        try:
            with as_failures():
                state, broken_off = await self._awaited(container)
                lives = not broken_off or self._stopping or (await self._engine.about()).live_restore
                code: int | None = state.exit_code
                if lives and state.started:
                    code = await self._exit_code(state, told=self._told and not broken_off)
        except ExecutionError:
            if self._removing:
                return Exit(code=KILLED_EXIT_CODE)  # by the removal, and gone before anybody could ask
            raise
        if not state.started:
            return ExecutionError(FailureKind.AGENT_RESTARTED, "the agent was restarted before user code ran")
        if code is None:
            message = "Docker does not know how the execution ended: it, or containerd, was away at that time"
            return ExecutionError(FailureKind.RUNTIME, message)
        if lives:
            return self._exit(code, state)
        message = (
            f"Docker was stopped on the node and took the execution with it (exit code {state.exit_code}); "
            'with "live-restore" in /etc/docker/daemon.json executions go on'
        )
        return ExecutionError(FailureKind.RUNTIME, message)

    async def _awaited(self, container: str) -> tuple[ContainerState, bool]:
        """The state after the end, and whether the engine went away at that moment.

        An engine that is stopped takes no more connections, then ends its containers, then its answers. One that is
        away is waited for without limit: its containers may run on, and then nobody may take what they hold.
        """
        broken_off, state = False, None
        await self._engine.starts.over()
        if not self._runs:
            state = await self._engine.containers.state(container, math.inf)
        while state is None or state.running:
            try:
                self._roused = await end_told(self._engine.containers, container, self._look_every)
            except EngineAwayError:
                broken_off = True
            else:
                broken_off = not await self._stays(container)
            self._told = not broken_off
            state = await self._engine.containers.state(container, math.inf)
        return state, broken_off or not await self._stays(container)

    async def _exit_code(self, state: ContainerState, *, told: bool) -> int | None:
        """The exit code of a container that has ended; None: the engine does not know it.

        An engine that is told to stop what had ended unseen makes up another. One that is made to look and finds
        nothing makes up an exit code, and an end that has it. 0 is believed where the engine told of the end when it
        came, as most executions end so: what it saw need not be asked for then.
        """
        made_up = state.exit_code in MADE_UP_EXIT_CODES
        sure = state.dated and (not made_up or (told and state.exit_code == 0 and not self._roused))
        if not self._engine.watches or (sure and not self._stopping):
            return state.exit_code
        if self._roused and made_up:
            return None
        seen = await self._engine.containers.seen_end(state.id)
        return state.exit_code if seen is None and sure else seen

    async def _stays(self, container: str) -> bool:
        """Whether the engine that told of the end goes on. One that is late may be another, which saw no end."""
        answer = await self._engine.connection.ping()
        if answer is PingAnswer.LATE and self._engine.watches:
            return await self._engine.containers.seen_end(container) is not None
        return answer is not PingAnswer.NONE

    def _exit(self, code: int, state: ContainerState) -> Exit:
        """Engines do not notice every kill for lack of memory; nobody else kills what has a limit."""
        suspected = code == KILLED_EXIT_CODE and state.memory_limited and not self._stopping
        return Exit(code=code, out_of_memory=state.out_of_memory or suspected)


async def end_told(containers: EngineContainers, container: str, look_every: float = FIRST_PROCESS_LOOK) -> bool:
    """Wait until the engine tells that a container has ended; whether it missed the end and was made to look.

    Raises EngineAwayError when the engine goes. What it refuses while it is looked after is asked again later.
    """
    waiting = asyncio.get_running_loop().create_task(containers.wait(container), name=f"end of {container[:12]}")
    pid, roused = 0, False
    try:
        while not (await asyncio.wait([waiting], timeout=look_every))[0]:
            with contextlib.suppress(EngineAwayError, EngineError):
                pid = pid or (await containers.state(container, 0)).pid
                if pid and not await asyncio.to_thread(_runs, container, pid) and await containers.deserted(container):
                    log.warning("Docker missed the end of a container", extra={"container": container})
                    roused = True
                    await containers.rouse(container)
        waiting.result()
    finally:
        waiting.cancel()
    return roused


def _runs(container: str, pid: int) -> bool:
    """Whether a process is there and belongs to a container, as far as this machine's processes tell."""
    try:
        return container in Path(f"/proc/{pid}/cgroup").read_text()
    except OSError:
        return False
