"""The agent's way to the mover: started when something is to be moved, started again when it dies, ended after that."""

import asyncio
import json
import logging
import os
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from agent.data.left_files import LeftFile
from agent.data.mover.messages import (
    LONGEST_LINE,
    BucketPart,
    MoverAsk,
    MoverFault,
    access_said,
    line_of,
    object_heard,
    object_said,
    part_said,
)
from muster.daemon.own_programs import command_of, environment_of_ours
from muster.domain.data.buckets.bucket_url import BucketUrl
from muster.domain.data.buckets.listing import BucketListing, StoredObject
from muster.domain.data.tree import ContentEntry
from muster.domain.errors import MusterError
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.transfer.bucket_faults import BucketAwayError, BucketRefusedError, NoObjectError
from muster.transfer.store_access import StoreAccess

log = logging.getLogger(__name__)

MOVER_DEATHS = 5
"""How often the mover may die over one question without moving a byte of it."""
MOVER_PAUSE = 0.5
"""Seconds until a mover that has died is started again."""
MOVER_LEAVES = 2.0
"""Seconds in which a mover that is needed no more ends by itself."""

_KEPT_VARIABLES = ("PATH", "PYTHONPATH", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR")
"""No other variable of the agent reaches the mover: none of them may say who it is to a store."""

Arrived = Callable[[int], None]


class MoverEndedError(MusterError):
    """The mover has ended before it had answered."""


class Mover:
    """One mover for all inputs, or all outputs, of a node, while somebody needs it."""

    def __init__(self, command: Sequence[str] | None = None, pause: float = MOVER_PAUSE) -> None:
        """Start nothing yet; `command` starts a mover, and none means ours."""
        self._command = command_of("agent.data.mover.program") if command is None else command
        self._pause = pause
        self._numbers = count(1)
        self._users = 0
        self._turn = asyncio.Lock()
        self._program: MoverProgram | None = None

    @property
    def pid(self) -> int | None:
        """The mover that runs now."""
        return None if self._program is None else self._program.pid

    @asynccontextmanager
    async def needed(self) -> AsyncIterator[None]:
        """Have the mover end when the last of those who need it does not any more."""
        self._users += 1
        try:
            yield
        finally:
            self._users -= 1
            if not self._users and self._program is not None:
                program, self._program = self._program, None
                await program.end()

    async def listed(self, url: BucketUrl, access: StoreAccess) -> BucketListing:
        """The objects that a URL stands for. Raises BucketRefusedError, BucketAwayError or ExecutionError."""
        question = {"ask": MoverAsk.LIST, "bucket": url.bucket, "key": url.key, "access": access_said(access)}
        answer = await self.asked(question, lambda _: None)
        return BucketListing(tuple(map(object_heard, answer["listed"])))

    async def fetched(
        self, bucket: str, wanted: StoredObject, access: StoreAccess, part: Path, arrived: Arrived
    ) -> str:
        """SHA-256 of an object that is whole in a file now, gone on with where it was; raises as above, and OSError.

        `arrived` hears how many of its bytes are there.
        """
        question = {
            "ask": MoverAsk.FETCH,
            "bucket": bucket,
            "object": object_said(wanted),
            "access": access_said(access),
            "part": str(part),
        }
        answer = await self.asked(question, arrived)
        return str(answer["sha256"])

    async def read(
        self, bucket: str, parts: Sequence[BucketPart], access: StoreAccess, into: Path, arrived: Arrived
    ) -> None:
        """Have parts of objects one after the other in a file that is there, and nothing else; raises as above."""
        question = {
            "ask": MoverAsk.READ,
            "bucket": bucket,
            "parts": list(map(part_said, parts)),
            "access": access_said(access),
            "into": str(into),
        }
        await self.asked(question, arrived)

    async def stored(self, url: BucketUrl, access: StoreAccess, file: LeftFile, entry: ContentEntry) -> None:
        """Have what a file holds as an object. Raises as above; OSError where the file is not as it was read."""
        question = {
            "ask": MoverAsk.STORE,
            "bucket": url.bucket,
            "key": url.key,
            "access": access_said(access),
            "file": [str(file.directory), file.path, file.owner],
            "size": entry.size,
            "sha256": entry.content,
        }
        await self.asked(question, lambda _: None)

    async def removed(self, bucket: str, keys: Sequence[str], access: StoreAccess) -> None:
        """Have objects be there no more. Raises BucketRefusedError, BucketAwayError or ExecutionError."""
        question = {"ask": MoverAsk.REMOVE, "bucket": bucket, "keys": list(keys), "access": access_said(access)}
        await self.asked(question, lambda _: None)

    async def asked(self, question: Mapping[str, Any], arrived: Arrived) -> Mapping[str, Any]:
        """Ask, and ask a new mover where one has died: whatever it is asked may be asked twice. Raises as above."""
        deaths, furthest = 0, -1

        def heard(there: int) -> None:
            nonlocal deaths, furthest
            if there > furthest >= 0:
                deaths = 0
            furthest = max(furthest, there)
            arrived(there)

        while True:
            program = await self._running()
            try:
                return _answer(await program.asked(next(self._numbers), question, heard))
            except MoverEndedError as error:
                deaths += 1
                log.warning("the mover ended before it had answered", extra={"cause": str(error)})
                if deaths >= MOVER_DEATHS:
                    message = f"the program that moves data ended {deaths} times in a row: {error}"
                    raise ExecutionError(FailureKind.RUNTIME, message) from None
            await asyncio.sleep(self._pause)

    async def _running(self) -> "MoverProgram":
        async with self._turn:
            if self._program is None or self._program.gone:
                self._program = await MoverProgram.started(self._command)
            return self._program


class MoverProgram:
    """One process, and what it has been asked."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._asked: dict[int, tuple[asyncio.Future[Mapping[str, Any]], Arrived]] = {}
        self._hearing = asyncio.create_task(self._hear())

    @classmethod
    async def started(cls, command: Sequence[str]) -> "MoverProgram":
        """A process that has just been started; raises ExecutionError."""
        kept = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                env=environment_of_ours(kept),
                limit=LONGEST_LINE,
            )
        except OSError as error:
            message = f"the program that moves data cannot be started: {error.strerror or error}"
            raise ExecutionError(FailureKind.RUNTIME, message) from None
        return cls(process)

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def gone(self) -> bool:
        """Whether it answers no more."""
        return self._hearing.done()

    async def asked(self, number: int, question: Mapping[str, Any], arrived: Arrived) -> Mapping[str, Any]:
        """The answer to a question; raises MoverEndedError. A caller who is cancelled leaves the question."""
        answer: asyncio.Future[Mapping[str, Any]] = asyncio.get_running_loop().create_future()
        self._asked[number] = (answer, arrived)
        try:
            if self.gone:
                raise MoverEndedError(self._ending())
            await self._say(line_of(number, **question))
            return await answer
        except asyncio.CancelledError:
            if not self.gone:
                self._input.write(line_of(number, ask=MoverAsk.STOP))
            raise
        finally:
            self._asked.pop(number, None)

    async def end(self) -> None:
        """End the process: it leaves when its input ends, and is killed where it does not."""
        self._input.close()
        try:
            async with asyncio.timeout(MOVER_LEAVES):
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        await asyncio.wait([self._hearing])

    @property
    def _input(self) -> asyncio.StreamWriter:
        assert self._process.stdin is not None
        return self._process.stdin

    async def _say(self, line: bytes) -> None:
        with suppress(ConnectionError):  # who hears its answers notices that it has ended
            self._input.write(line)
            await self._input.drain()

    async def _hear(self) -> None:
        """Hand on its answers until it ends, and tell that to all who wait."""
        assert self._process.stdout is not None
        try:
            while line := await self._process.stdout.readline():
                self._take(json.loads(line))
        except ValueError as error:
            log.warning("what the mover says cannot be read", extra={"cause": str(error)})
        finally:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            for answer, _ in self._asked.values():
                if not answer.done():
                    answer.set_exception(MoverEndedError(self._ending()))

    def _take(self, said: Mapping[str, Any]) -> None:
        known = self._asked.get(said["n"])
        if known is None:
            return  # whoever asked has left
        answer, arrived = known
        if "arrived" in said:
            arrived(said["arrived"])
        elif not answer.done():
            answer.set_result(said)

    def _ending(self) -> str:
        code = self._process.returncode
        return "it was stopped" if code is None else f"signal {-code}" if code < 0 else f"exit code {code}"


def _answer(said: Mapping[str, Any]) -> Mapping[str, Any]:
    """An answer that is none of the faults, which are raised."""
    match said.get("fault"):
        case None:
            return said
        case MoverFault.REFUSED:
            raise BucketRefusedError(said["why"])
        case MoverFault.NOTHING:
            raise NoObjectError(said["why"])
        case MoverFault.AWAY:
            raise BucketAwayError(said["why"])
        case MoverFault.BROKEN:
            raise ExecutionError(FailureKind.RUNTIME, f"the program that moves data failed: {said['why']}")
        case _:
            raise OSError(said["errno"], said["why"], said["place"] or None)
