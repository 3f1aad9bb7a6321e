"""The agent's side of the launcher: starts it, and gets supervisors from it."""

import asyncio
import json
import logging
import socket
import subprocess
from contextlib import suppress
from typing import Any

from agent.runtimes.kernel.pids import Process
from agent.runtimes.process.order import GO, OTHER_USERS, Groups, ProgramOrder, groups_line
from agent.runtimes.process.record import ProcessRecord
from muster.daemon.own_programs import lean_command_of
from muster.domain.jobs.failure import ExecutionError, FailureKind

log = logging.getLogger(__name__)

SUPERVISOR_LIMIT = 20.0
"""Seconds in which a supervisor answers; it needs a thousandth, but the node may be busy."""

END_LIMIT = 5.0
"""Seconds in which the launcher ends."""

LONGEST_SUPERVISOR_ANSWER = 64 * 1024


class Launcher:
    """One for an agent, however many nodes it is; starts at the first need, and again if it was killed."""

    def __init__(self, *, other_users: bool = False) -> None:
        self._options = (OTHER_USERS,) if other_users else ()
        """Whether programs will run as other users than the agent."""
        self._process: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None

    @property
    def pid(self) -> int | None:
        """The launcher's process id, while there is one."""
        return None if self._process is None else self._process.pid

    @property
    def runs(self) -> bool:
        """Whether it was started and not ended."""
        return self._process is not None

    def start(self) -> None:
        """Have it run; harmless when repeated."""
        if self._process is not None and self._process.poll() is None:
            return
        if self._process is not None:
            log.warning("the launcher of processes was killed; starting another one", extra={"pid": self._process.pid})
            self._control.close()
        self._line, its = socket.socketpair()
        self._line.setblocking(False)
        with its:
            self._process = subprocess.Popen(  # noqa: S603 (our own program)
                lean_command_of("agent.runtimes.process.launcher_program", str(its.fileno()), *self._options),
                cwd="/",
                env={"LD_BIND_NOW": "1"},  # what is looked up now is not looked up again by each supervisor
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(its.fileno(),),
                start_new_session=True,
            )

    def make(self) -> "Supervisor":
        """A new one, without waiting for it. Raises ExecutionError."""
        for _ in range(2):
            self.start()
            ours, its = socket.socketpair()
            ours.setblocking(False)
            with its:
                try:
                    socket.send_fds(self._control, [b"."], [its.fileno()])
                except ConnectionError:
                    ours.close()  # the launcher was killed just now, and is gone in a moment
                    self._gone()
                except BlockingIOError:
                    ours.close()
                    raise _silence() from None
                else:
                    return Supervisor(ours)
        raise ExecutionError(FailureKind.RUNTIME, "the launcher of processes ends as soon as it is started")

    @property
    def _control(self) -> socket.socket:
        assert self._line is not None, "`start` comes first"
        return self._line

    def _gone(self) -> None:
        """Wait for the launcher, which has let go of its end: until it is gone, `start` takes it for alive."""
        with suppress(subprocess.TimeoutExpired):
            if self._process is not None:
                self._process.wait(END_LIMIT)

    async def close(self) -> None:
        """End it; supervisors go on. Harmless when repeated, and another `start` starts another one."""
        if self._process is None:
            return
        ending, self._process = self._process, None
        self._control.close()
        try:
            await asyncio.to_thread(ending.wait, END_LIMIT)
        except subprocess.TimeoutExpired:
            ending.kill()
            await asyncio.to_thread(ending.wait)


class Supervisor:
    """A supervisor before the start of its program, and again after all of it. Meanwhile it needs no agent."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._process: Process | None = None
        self.groups: Groups = ()
        """The cgroups that it was told to be in."""
        self.released = False
        """Whether the program was told to start."""

    def enter(self, groups: Groups) -> None:
        """Tell it the cgroups of its program early, without waiting for it; without any it leaves those it is in."""
        self.groups = groups
        with suppress(OSError):  # it is gone, which shows when it is armed
            self._connection.send(groups_line(groups))

    async def arm(self, order: ProgramOrder) -> None:
        """Have everything made ready; another order replaces the one before.

        Raises ConnectionError if there is no supervisor (any more), and OSError where the node refuses something.
        """
        self.groups = order.groups
        self._process = Process(**(await self._ask(order.line()))["supervisor"])

    async def release(self) -> ProcessRecord:
        """Start the program; one that was interrupted may be repeated. Raises OSError like `arm`."""
        question, self.released = b"" if self.released else GO, True
        answer = await self._ask(question)
        assert self._process is not None, "release comes after arm"
        return ProcessRecord(supervisor=self._process, program=Process(**answer["program"]))

    def renew(self) -> None:
        """Be as before the first order, in the same cgroups."""
        self._process, self.released = None, False

    def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        self.close()
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """Let go of it: it ends, after its program where it was released. Harmless when repeated."""
        self._connection.close()

    async def _ask(self, question: bytes) -> dict[str, Any]:
        """What it answers; refusals are raised."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(SUPERVISOR_LIMIT):
                await loop.sock_sendall(self._connection, question)
                text = await loop.sock_recv(self._connection, LONGEST_SUPERVISOR_ANSWER)
        except TimeoutError:
            raise _silence() from None
        except ConnectionError:
            text = b""
        if not text:
            raise ConnectionResetError("its supervisor was killed")
        answer: dict[str, Any] = json.loads(text)
        if "errno" in answer:
            raise OSError(answer["errno"], answer["reason"])
        return answer


def _silence() -> ExecutionError:
    message = f"the launcher of processes did not answer for {SUPERVISOR_LIMIT:g} s; is the node overloaded?"
    return ExecutionError(FailureKind.RUNTIME, message)
