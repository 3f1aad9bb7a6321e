"""The source of real GPUs: keeps the NVML process, and does without it when it does not answer."""

import asyncio
import json
import logging
import os
import signal
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Self, cast

from agent.gpus.health import CRITICAL_XIDS, broken, examine, fault
from agent.gpus.nvml_messages import (
    CATCH_UP,
    PROCESSES,
    READ,
    USE,
    Answer,
    FaultMessage,
    GpuUseMessage,
    Message,
    ProcessesMessage,
    UseMessage,
)
from agent.gpus.source import FaultStream, GpuFault, GpuReading
from muster.daemon.own_programs import command_of, environment_of_ours
from muster.domain.fleet.node import Gpu, GpuProcess
from muster.domain.ids import GpuUuid
from muster.domain.telemetry.sample import GpuUse

log = logging.getLogger(__name__)

ANSWER_DEADLINE = timedelta(seconds=10)
"""Longest wait for one reading, the start of the process included; a busy driver with eight GPUs needs less than two
seconds.
"""

LEAVE = timedelta(seconds=1)
"""How long a killed process is waited for when the source is closed; one that is stuck in the driver never goes."""

_NOTHING_USED: UseMessage = {"kind": "use", "gpus": {}}
LIBRARY = "libnvidia-ml.so.1"
LOADER_CACHE = Path("/etc/ld.so.cache")
LOADER_DIRECTORIES = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib")
KERNEL_DRIVER = Path("/proc/driver/nvidia/version")


class NvmlSource:
    """The GPUs that the NVIDIA driver tells; none, and no process, where there is no driver.

    `environ` is what the NVML process runs in, the agent's own unless a test says otherwise.
    """

    def __init__(self, environ: Mapping[str, str] | None = None, deadline: timedelta = ANSWER_DEADLINE) -> None:
        self._environ = dict(os.environ if environ is None else environ)
        self._deadline = deadline
        self._turn = asyncio.Lock()
        self._process: NvmlProcess | None = None
        self._leaving: NvmlProcess | None = None
        self._known: tuple[Gpu, ...] = ()
        self._xids: defaultdict[GpuUuid, list[int]] = defaultdict(list)
        self._faults = FaultStream()

    async def read(self) -> GpuReading:
        """Ask the NVML process, which is started when there is a driver and none is running."""
        async with self._turn:
            if self._process is None and not await asyncio.to_thread(library_installed, self._environ):
                return self._without_library()
            answer = await self._ask()
        if answer["kind"] == "problem":
            return self._unreadable(answer["problem"])
        reading = examine(answer, self._known, self._xids)
        self._known = reading.gpus
        return reading

    def faults(self) -> AsyncIterator[GpuFault]:
        """Every Xid since the first reading."""
        return self._faults.listen()

    async def use(self) -> Mapping[GpuUuid, GpuUse]:
        """Ask the NVML process; nothing is known where none runs, or it does not answer."""
        told = await self._told(USE)
        return {GpuUuid(uuid): _use(gpu) for uuid, gpu in told["gpus"].items()} if told["kind"] == "use" else {}

    async def processes(self) -> Mapping[GpuUuid, Sequence[GpuProcess]]:
        """Ask the NVML process, as for `use`."""
        told = await self._told(PROCESSES)
        if told["kind"] != "processes":
            return {}
        return {
            GpuUuid(uuid): [GpuProcess(pid=each["pid"], memory=each["memory"]) for each in processes]
            for uuid, processes in told["gpus"].items()
        }

    async def _told(self, request: bytes) -> UseMessage | ProcessesMessage:
        async with self._turn:  # a reading that is late ends the process
            process = self._process
            if process is not None and not process.gone.is_set():
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._deadline.total_seconds()):
                        return await process.tell(request)
        return _NOTHING_USED

    async def catch_up(self) -> None:
        """Have the driver asked for faults at once, and wait until all were heard."""
        if self._process is not None:
            await self._process.catch_up()
        await self._faults.taken()

    async def close(self) -> None:
        """End the NVML process; one that is stuck in the driver is left behind."""
        self._faults.end()
        if self._process:
            self._process.kill()  # whoever waits for its answer is told at once
        async with self._turn:
            self._dismiss()
            if self._leaving and not await self._leaving.left(LEAVE):
                log.warning(
                    "the NVML process is stuck in the driver and stays behind", extra={"pid": self._leaving.pid}
                )

    async def _ask(self) -> Answer:
        """Get an answer from a process that is kept only if it gave one."""
        try:
            async with asyncio.timeout(self._deadline.total_seconds()):
                if self._process is None or self._process.gone.is_set():
                    self._process = await self._start()
                answer = await self._process.ask()
        except TimeoutError:
            answer = {"kind": "problem", "problem": f"NVML did not answer within {self._deadline.total_seconds():g} s"}
        except asyncio.CancelledError:
            self._dismiss()
            raise
        if answer["kind"] == "problem":
            self._dismiss()
        return answer

    async def _start(self) -> "NvmlProcess":
        if self._leaving:  # at most one process is ever stuck in the driver
            await self._leaving.gone.wait()
            self._leaving = None
        return await NvmlProcess.start(self._environ, self._fault)

    def _dismiss(self) -> None:
        if self._process:
            self._process.kill()
            self._process, self._leaving = None, self._process

    def _fault(self, message: FaultMessage) -> None:
        uuid, xid = GpuUuid(message["uuid"]), message["xid"]
        if xid in CRITICAL_XIDS and xid not in self._xids[uuid]:
            self._xids[uuid].append(xid)
        self._faults.put(fault(uuid, xid))

    def _without_library(self) -> GpuReading:
        if KERNEL_DRIVER.exists():
            return self._unreadable(f"the NVIDIA kernel driver is loaded but {LIBRARY} is not installed")
        return self._unreadable("the NVIDIA driver was removed") if self._known else GpuReading()

    def _unreadable(self, problem: str) -> GpuReading:
        self._known = tuple(broken(gpu, problem, self._xids) for gpu in self._known)
        return GpuReading(gpus=self._known, problem=problem)


def library_installed(environ: Mapping[str, str]) -> bool:
    """Whether the loader would find NVML; cheap, and without loading it into this process."""
    searched = (*environ.get("LD_LIBRARY_PATH", "").split(":"), *LOADER_DIRECTORIES)
    if any(directory and Path(directory, LIBRARY).exists() for directory in searched):
        return True
    try:
        return LIBRARY.encode() in LOADER_CACHE.read_bytes()
    except OSError:
        return False


class NvmlProcess(asyncio.SubprocessProtocol):
    """One run of `agent.gpus.nvml.program`: answers one request at a time, and passes faults on as they come."""

    def __init__(self, on_fault: Callable[[FaultMessage], None]) -> None:
        self.gone = asyncio.Event()
        """Set when the process has ended."""
        self._on_fault = on_fault
        self._answers: asyncio.Queue[Answer] = asyncio.Queue()
        self._catching_up: deque[asyncio.Future[None]] = deque()
        """Callers that wait for that, in the order in which they will be answered."""
        self._uses: deque[asyncio.Future[UseMessage | ProcessesMessage]] = deque()
        """Callers that want to know the use, in the order in which they will be answered."""
        self._unfinished = b""
        self._connected: asyncio.SubprocessTransport | None = None

    @classmethod
    async def start(cls, environ: Mapping[str, str], on_fault: Callable[[FaultMessage], None]) -> Self:
        """Start it; it looks for GPUs right away."""
        _, process = await asyncio.get_running_loop().subprocess_exec(
            lambda: cls(on_fault),
            *command_of("agent.gpus.nvml.program"),
            env=environment_of_ours(environ),
            stderr=None,  # what it complains about belongs in the agent's log
        )
        return process

    @property
    def _transport(self) -> asyncio.SubprocessTransport:
        assert self._connected is not None, "`start` comes first"
        return self._connected

    @property
    def pid(self) -> int | None:
        """The process id, for the log."""
        return self._transport.get_pid()

    async def ask(self) -> Answer:
        """Get the GPUs as they are now, or why they cannot be told."""
        self._request(READ)
        return await self._answers.get()

    async def tell(self, request: bytes) -> UseMessage | ProcessesMessage:
        """What is seen of each GPU that answers; nothing once the process has ended."""
        answer: asyncio.Future[UseMessage | ProcessesMessage] = asyncio.get_running_loop().create_future()
        self._uses.append(answer)
        self._request(request)
        return await answer

    async def catch_up(self) -> None:
        """Wait until every fault that the driver has reported was passed on, or the process has ended."""
        if self.gone.is_set():
            return
        caught_up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._catching_up.append(caught_up)
        self._request(CATCH_UP)
        await caught_up

    def kill(self) -> None:
        """End it without waiting; `gone` tells when it has."""
        self._transport.close()

    async def left(self, patience: timedelta) -> bool:
        """Whether it ends within some time."""
        try:
            await asyncio.wait_for(self.gone.wait(), patience.total_seconds())
        except TimeoutError:
            return False
        return True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop when it has started."""
        self._connected = cast("asyncio.SubprocessTransport", transport)

    def pipe_data_received(self, fd: int, data: bytes) -> None:  # noqa: ARG002 - the one pipe it writes to
        """Called by the event loop with what it writes."""
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - its exit status says more
        """Called by the event loop when it has ended and all that it wrote was read."""
        self.gone.set()
        while self._catching_up:
            self._catch_up_next()
        while self._uses:
            self._tell_use(_NOTHING_USED)
        self._answers.put_nowait({"kind": "problem", "problem": f"the NVML process {self._end()}"})

    def _take(self, message: Message) -> None:
        if message["kind"] == "fault":
            self._on_fault(message)
        elif message["kind"] == "caught up":
            self._catch_up_next()
        elif message["kind"] == "use" or message["kind"] == "processes":
            self._tell_use(message)
        else:
            self._answers.put_nowait(message)

    def _catch_up_next(self) -> None:
        waiting = self._catching_up.popleft()
        if not waiting.done():
            waiting.set_result(None)

    def _tell_use(self, told: UseMessage | ProcessesMessage) -> None:
        waiting = self._uses.popleft()
        if not waiting.done():
            waiting.set_result(told)

    def _request(self, request: bytes) -> None:
        requests = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))
        requests.write(request + b"\n")

    def _end(self) -> str:
        status = self._transport.get_returncode()
        if status is not None and status < 0:
            return f"was killed by {signal.Signals(-status).name}"
        return f"ended with status {status}; the agent's log has its last words"


def _use(told: GpuUseMessage) -> GpuUse:
    percent, milliwatts = told["percent"], told["milliwatts"]
    busy = None if percent is None else percent / 100
    return GpuUse(
        busy=busy,
        busy_most=busy,
        memory=told["memory"],
        watts=None if milliwatts is None else milliwatts / 1000,
        celsius=told["celsius"],
        clock_mhz=told["clock_mhz"],
        throttled=told["throttled"],
    )
