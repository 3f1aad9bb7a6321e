"""A file behind a URL as the origin from which a node of a swarm fetches its share."""

import asyncio
from collections.abc import Sequence

from agent.swarm.gathering import ORIGIN_LANES, OriginAwayError, Write
from muster.domain.data.swarm import ContentSpan
from muster.transfer.web_access import WebAccess
from muster.transfer.web_file import FileAwayError, FileRefusedError, PartHere, WebFile


class WebOrigin:
    """One version of a file behind a URL, whose server gives parts of it."""

    lanes = ORIGIN_LANES

    def __init__(self, url: str, access: WebAccess, version: str, patience: float) -> None:
        self._url = url
        self._access = access
        self._version = version
        self._patience = patience

    async def fetch(self, spans: Sequence[ContentSpan], write: Write) -> None:
        """Have parts of the file written. Raises OriginAwayError, or FileRefusedError where it has changed."""
        for span in spans:
            try:
                await self._part(span, write)
            except FileAwayError as error:
                raise OriginAwayError(str(error)) from None

    async def _part(self, span: ContentSpan, write: Write) -> None:
        opening = asyncio.ensure_future(asyncio.to_thread(self._open, span))
        try:
            file = await asyncio.shield(opening)
        except asyncio.CancelledError:
            opening.add_done_callback(_close)
            raise
        reading: asyncio.Future[bytes] | None = None
        try:
            if not file.is_part or file.version != self._version:
                raise FileRefusedError("the file has changed while it was read")
            while True:
                reading = asyncio.ensure_future(asyncio.to_thread(file.read))
                if not (data := await asyncio.shield(reading)):
                    return
                await write(data)
        finally:
            file.stop()
            if reading is not None and not reading.done():
                await asyncio.wait([reading])
                reading.exception()
            file.close()

    def _open(self, span: ContentSpan) -> WebFile:
        here = PartHere(offset=span.offset, version=self._version, end=span.offset + span.length)
        return WebFile(self._url, here, self._patience, self._access)


def _close(opening: "asyncio.Future[WebFile]") -> None:
    """Let go of an answer for which nobody waits any more."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()
