"""The agent's side of the launcher: starts it, and gets held programs from it."""

import asyncio
import errno
import json
import logging
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from agent.runtimes.pids import Process
from agent.runtimes.supervisor import Order
from muster.domain.failure import ExecutionError, FailureKind

log = logging.getLogger(__name__)

ANSWER_LIMIT = 20.0
"""Seconds in which a supervisor answers; it needs a thousandth, but the node may be busy."""

END_LIMIT = 5.0
"""Seconds in which the launcher ends."""

AT_ONCE = 32
"""So many supervisors are asked for beside each other; more would not fit into the socket."""

LONGEST_ANSWER = 64 * 1024

CODE = "import sys; sys.path.insert(0, sys.argv.pop()); from agent.runtimes.launcher_program import main; main()"
ROOT = Path(__file__).parents[2]
"""Where the packages are; without site-packages the launcher starts faster and stays smaller."""


class Launcher:
    """One for an agent, however many nodes it is; starts at the first need, and again if it was killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket
        self._turns = asyncio.Semaphore(AT_ONCE)

    @property
    def pid(self) -> int | None:
        """Of the launcher, while there is one."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Have it there by the time it is needed."""
        if self._process is not None and self._process.poll() is None:
            return
        if self._process is not None:
            log.warning("the launcher of processes was killed; starting another one", extra={"pid": self._process.pid})
            self._control.close()
        self._control, its = socket.socketpair()
        self._control.setblocking(False)
        with its:
            self._process = subprocess.Popen(  # noqa: S603 (our own program)
                [sys.executable, "-I", "-S", "-X", "utf8", "-c", CODE, str(its.fileno()), str(ROOT)],
                cwd="/",
                env={},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(its.fileno(),),
                start_new_session=True,
            )

    async def hold(self, order: Order) -> "HeldProgram":
        """A process that is the program but for the last call. Raises OSError and ExecutionError."""
        async with self._turns:
            try:
                return await self._hold(order)
            except ConnectionError:
                self.start()  # the launcher was killed, and nothing was started
                return await self._hold(order)

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

    async def _hold(self, order: Order) -> "HeldProgram":
        self.start()
        ours, its = socket.socketpair()
        ours.setblocking(False)
        try:
            with its:
                socket.send_fds(self._control, [b"."], [its.fileno()])
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(ANSWER_LIMIT):
                await loop.sock_sendall(ours, order.line())
                answer = await _answer(ours)
        except TimeoutError:
            ours.close()
            raise _silence() from None
        except BaseException:
            ours.close()
            raise
        if answer is None:
            ours.close()
            raise ConnectionResetError(errno.ECONNRESET, "no supervisor could be made")
        return HeldProgram(ours, Process(**answer["supervisor"]), Process(**answer["program"]))


class HeldProgram:
    """A program that waits for its release. Without it, or without its agent, it never runs."""

    def __init__(self, connection: socket.socket, supervisor: Process, program: Process) -> None:
        self.supervisor = supervisor
        self.program = program
        self._connection = connection

    async def release(self) -> None:
        """Let it run; raises OSError where the kernel refuses it, and ExecutionError."""
        try:
            async with asyncio.timeout(ANSWER_LIMIT):
                await asyncio.get_running_loop().sock_sendall(self._connection, b".")
                await _answer(self._connection)
        except TimeoutError:
            raise _silence() from None
        except ConnectionError:  # killed while it was held; how it ended is in the record, if it began
            log.warning("a program was killed before its start", extra={"pid": self.program.pid})
        finally:
            self._connection.close()

    async def give_up(self) -> None:
        """End it; returns when nothing is left of it. Harmless when repeated, and after its release."""
        if self._connection.fileno() < 0:
            return
        with self._connection:
            self._connection.shutdown(socket.SHUT_WR)
            async with asyncio.timeout(ANSWER_LIMIT):
                await asyncio.get_running_loop().sock_recv(self._connection, 1)


async def _answer(connection: socket.socket) -> dict[str, Any] | None:
    """What the other end says before it closes, if anything; refusals are raised."""
    text = await asyncio.get_running_loop().sock_recv(connection, LONGEST_ANSWER)
    if not text:
        return None
    answer: dict[str, Any] = json.loads(text)
    if "errno" in answer:
        raise OSError(answer["errno"], answer["reason"])
    return answer


def _silence() -> ExecutionError:
    message = f"the launcher of processes did not answer for {ANSWER_LIMIT:g} s; is the node overloaded?"
    return ExecutionError(FailureKind.RUNTIME, message)
