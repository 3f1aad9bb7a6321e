"""Answers the questions that an agent writes to a program of its own, a line each, several at the same time."""

import asyncio
import ctypes
import json
import os
import resource
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from agent.data.mover.messages import LONGEST_LINE, MoverAsk, MoverFault, line_of
from muster.transfer.bucket_faults import BucketAwayError, BucketRefusedError, NoObjectError

_PR_SET_DUMPABLE = 4
Send = Callable[[bytes], None]


class AnsweredWork(ABC):
    """What a program has been asked and has not answered yet."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._tasks: dict[int, asyncio.Task[None]] = {}

    @abstractmethod
    async def done(self, number: int, asked: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a question. Raises BucketRefusedError, BucketAwayError or OSError."""

    def take(self, asked: Mapping[str, Any]) -> None:
        """Begin with a question, or leave one."""
        number = asked["n"]
        if asked["ask"] == MoverAsk.STOP:
            if (task := self._tasks.get(number)) is not None:
                task.cancel()
            return
        self._tasks[number] = task = asyncio.create_task(self._answer(number, asked))
        task.add_done_callback(lambda _: self._tasks.pop(number, None))

    def end(self) -> None:
        """Leave all questions."""
        for task in self._tasks.values():
            task.cancel()

    def arrived(self, number: int, there: int) -> None:
        """Tell how much of what a question wants is there."""
        self._send(line_of(number, arrived=there))

    async def _answer(self, number: int, asked: Mapping[str, Any]) -> None:
        try:
            answer = await self.done(number, asked)
        except BucketRefusedError as error:
            fault = MoverFault.NOTHING if isinstance(error, NoObjectError) else MoverFault.REFUSED
            answer = {"fault": fault, "why": str(error)}
        except BucketAwayError as error:
            answer = {"fault": MoverFault.AWAY, "why": str(error)}
        except BlockingIOError:
            answer = {"fault": MoverFault.AWAY, "why": "another mover of this node has not let go of it yet"}
        except OSError as error:
            why = error.strerror or type(error).__name__
            answer = {"fault": MoverFault.DISK, "why": why, "errno": error.errno, "place": str(error.filename or "")}
        except Exception as error:  # noqa: BLE001 - whoever asked must hear of whatever it is
            answer = {"fault": MoverFault.BROKEN, "why": type(error).__name__}
        self._send(line_of(number, **answer))


def answer_agent(work_of: Callable[[Send], AnsweredWork]) -> None:
    """Serve standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole foreground group; the agent decides
    keep_secrets_in()
    answers = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints must not come between the answers
    with suppress(BrokenPipeError):  # the agent is gone
        asyncio.run(_serve(work_of(lambda line: write_all(answers, line))))


def keep_secrets_in() -> None:
    """Have no core dumps of this process, and nobody but root look into its memory."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


async def _serve(work: AnsweredWork) -> None:
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb", closefd=False))
    while line := await reader.readline():
        work.take(json.loads(line))
    work.end()


def write_all(descriptor: int, data: bytes) -> None:
    """Write all of some bytes; raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
