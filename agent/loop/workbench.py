"""What the actions of a node work with: directories, runtimes, ports, secrets, and the tasks that are under way."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent.attach.relayed.launches import LaunchesFirst
from agent.attach.relayed.usage import Usage
from agent.code.store import CodeStore
from agent.core.launching.site import NetworkInterface
from agent.core.watching.gpu_memory import PortionWatch
from agent.data.checkpoints.store import CheckpointStore
from agent.data.outputs import OutputStore
from agent.data.store import CacheSettings, InputStore
from agent.executions.directories import ExecutionDirectories
from agent.executions.held_resources import HeldResources
from agent.fencing.guard import FenceGuard
from agent.logs.file import DEFAULT_LIMIT
from agent.logs.push import LogPusher
from agent.loop.live_execution import LiveExecution
from agent.mailbox import Inbox
from agent.runtimes.runtime import Runtime
from agent.secrets.store import ExecutionSecrets
from agent.telemetry.busy import BusyTime
from muster.domain.fleet.node import GpuProcess
from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.jobs.job import RuntimeKind
from muster.domain.telemetry.sample import GpuUse


async def _at_once() -> None:
    """There are no faults to catch up on."""


async def _no_gpus() -> Mapping[GpuUuid, GpuUse]:
    """There are none that could tell."""
    return {}


async def _no_processes() -> Mapping[GpuUuid, Sequence[GpuProcess]]:
    """There are no GPUs on which they could be."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workbench:
    """What every action may need."""

    inbox: Inbox
    """Takes what comes of the actions."""
    guard: FenceGuard
    directories: ExecutionDirectories
    held: HeldResources
    runtimes: Mapping[RuntimeKind, Runtime]
    logs: LogPusher
    address: str
    """Where peers reach the executions."""
    interface: NetworkInterface | None
    """Network interface with that address, if it is known."""
    secrets: ExecutionSecrets = field(default_factory=ExecutionSecrets)
    code: CodeStore = field(default_factory=lambda: CodeStore(Path(os.devnull)))
    inputs: InputStore = field(
        default_factory=lambda: InputStore(CacheSettings(directory=Path(os.devnull), executions=Path(os.devnull)))
    )
    outputs: OutputStore = field(default_factory=OutputStore)
    checkpoints: CheckpointStore = field(default_factory=lambda: CheckpointStore(Path(os.devnull)))
    log_limit: int = DEFAULT_LIMIT
    """Bytes that are kept of what one execution prints."""
    catch_up_on_faults: Callable[[], Awaitable[None]] = _at_once
    """Returns when every fault of a GPU that came before the call is known here."""
    gpu_use: Callable[[], Awaitable[Mapping[GpuUuid, GpuUse]]] = _no_gpus
    """What is seen of each GPU that answers."""
    gpu_processes: Callable[[], Awaitable[Mapping[GpuUuid, Sequence[GpuProcess]]]] = _no_processes
    """The processes of each GPU that answers."""
    portions: PortionWatch = field(default_factory=PortionWatch)
    """Since when executions use more GPU memory than their portion."""
    busy: BusyTime = field(default_factory=BusyTime)
    """How long the GPUs of executions were busy."""
    usage: Usage = field(default_factory=Usage)
    """When executions were last used by who is attached to them."""
    launches: LaunchesFirst = field(default_factory=lambda: LaunchesFirst(time.monotonic))
    """Come before what people move to and from executions."""
    live: dict[ExecutionId, LiveExecution] = field(default_factory=dict)
    """What there is of each execution."""


class OngoingWork:
    """The tasks of executions while the loop runs: one action at a time, and what watches it."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self._tasks = tasks
        self.goes_on = True
        """Whether something may still be begun; not once the loop ends, while timers may still go off."""
        self._actions: dict[ExecutionId, asyncio.Task[None]] = {}
        self._watching: dict[ExecutionId, list[asyncio.Task[None]]] = {}

    def begin(self, execution: ExecutionId, action: Coroutine[None, None, None]) -> None:
        """Carry out an action; one that is under way goes on, unless the new one ends it."""
        self._actions[execution] = self._tasks.create_task(action, name=f"{execution}: action")

    def under_way(self, execution: ExecutionId) -> "asyncio.Task[None] | None":
        """The last action that was begun, which may have ended."""
        return self._actions.get(execution)

    def beside(self, work: Coroutine[None, None, None], name: str) -> None:
        """Do something that belongs to no execution."""
        self._tasks.create_task(work, name=name)

    def watch(self, execution: ExecutionId, work: Coroutine[None, None, None]) -> None:
        """Do something beside the actions until it ends, or the execution is cleared away."""
        task = self._tasks.create_task(work, name=f"{execution}: watch")
        self._watching.setdefault(execution, []).append(task)

    def stop_watching(self, execution: ExecutionId) -> None:
        """Give up what is done beside the actions."""
        for task in self._watching.pop(execution, []):
            task.cancel()

    def end(self) -> None:
        """Begin nothing any more."""
        self.goes_on = False

    def forget(self, execution: ExecutionId) -> None:
        """Nothing of an execution is left."""
        self._actions.pop(execution, None)


async def ended(action: "asyncio.Task[None] | None") -> None:
    """Wait for an action to end, however it ends: a sandbox is asked for one thing at a time."""
    if action is not None and not action.done():
        await asyncio.wait([action])
