"""Copies what a container prints into the spool of its execution, while it runs and after, without loss or double."""

import asyncio
import contextlib
import logging

from agent.logs.mask import MASK_NOTHING, Mask, MaskedRecords
from agent.logs.spool import LogSpool
from agent.runtimes.docker.engine.connection import EngineAwayError, EngineError
from agent.runtimes.docker.engine.engine import DockerEngine
from agent.runtimes.docker.log import Cursor, FrameParser, NotALogError, Resumption
from muster.domain.gangs.log import Stream

log = logging.getLogger(__name__)

RETURN_LIMIT = 300.0
"""Seconds for which an engine may be away before the rest of the output is given up; an upgrade takes less."""

END_MISSED = "the last lines may be missing: Docker was away when user code ended"
TOLD_WITHIN = 1000
"""Lines; what an earlier agent said so shortly before need not be repeated."""


class ContainerOutput:
    """The copying of one container's output; it owns the one activity that runs beside the calls to a sandbox."""

    def __init__(
        self, engine: DockerEngine, container: str, spool: LogSpool, mask: Mask = MASK_NOTHING, *, begun: bool = False
    ) -> None:
        """`begun`: the engine has started the container just now, so that nobody need ask it how they are."""
        self._engine = engine
        self._begun = begun
        self._mask = mask
        self._container = container
        self._spool = spool
        self._judging = asyncio.Lock()
        self._judged = False
        name = f"output of {container[:12]}"
        self._copying = asyncio.get_running_loop().create_task(self._copy(), name=name)

    async def complete(self) -> None:
        """Wait until all of it is in the spool, or a marker that says what is missing."""
        await asyncio.wait([self._copying])
        self._copying.result()

    async def cancel(self) -> None:
        """Stop copying; another Output goes on later where this one was."""
        self._copying.cancel()
        await asyncio.wait([self._copying])

    async def _copy(self) -> None:
        await self._engine.starts.over()
        try:
            async with asyncio.TaskGroup() as both:
                for stream in Stream:
                    both.create_task(self._follow(stream), name=f"{stream} of {self._container[:12]}")
        except* (EngineAwayError, EngineError, NotALogError) as problems:
            causes = ", ".join(map(str, problems.exceptions))
            self._spool.mark(f"output may be missing: {causes}")
            log.warning("output is not complete", extra={"container": self._container, "cause": causes})

    async def _follow(self, stream: Stream) -> None:
        """Read again and again until a reading that began after the end has found all there is.

        The end of a reading alone says nothing: an engine that is stopped ends its answers as a container does.
        """
        cursor = Cursor(*self._spool.resume_point(stream))
        begun, over = self._begun, False
        masking = MaskedRecords(self._mask)
        while not over:
            if not begun:
                state = await self._engine.containers.state(self._container, RETURN_LIMIT)
                over = not state.running
                if over and state.started:
                    await self._judge_the_end()
            begun = False
            resumption = Resumption(cursor)
            try:
                await self._read(stream, resumption, masking)
            except EngineAwayError as cause:
                over = False
                log.info("output broke off", extra={"container": self._container, "cause": str(cause)})
            cursor = resumption.cursor
        self._spool.append_all(list(masking.flush()))

    async def _judge_the_end(self) -> None:
        """Say so, once for both streams, where the last lines may be missing.

        What a container prints without its engine waits in a pipe, and goes with it when the container ends. Times do
        not tell: an engine that starts comes to a container some time after it has made its socket.
        """
        async with self._judging:
            if self._judged or not self._engine.watches:
                return
            seen = await self._engine.containers.seen_end(self._container) is not None
            if not seen and not any(END_MISSED in line for line in self._spool.tail(TOLD_WITHIN)):
                self._spool.mark(END_MISSED)
            self._judged = True

    async def _read(self, stream: Stream, resumption: Resumption, masking: MaskedRecords) -> None:
        parser = FrameParser(stream)
        chunks = self._engine.containers.output(self._container, stream, resumption.cursor.since)
        told = False
        async with contextlib.aclosing(chunks):
            async for chunk in chunks:
                found = [(record, resumption.is_new(record)) for record in parser.feed(chunk)]
                new = masking.of(found) if self._mask else [record for record, is_new in found if is_new]
                if resumption.gap and not told:
                    self._spool.mark("lines may be missing here: Docker had deleted them before they were read")
                    told = True
                self._spool.append_all(new)
