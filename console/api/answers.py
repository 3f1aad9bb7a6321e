"""Answers: one value with its ETag, lists in pages, and streams as server-sent events or lines of JSON."""

import asyncio
import hashlib
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from http import HTTPStatus
from types import NoneType
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from console.api.problems import problem_of
from console.mirror.rows import encoded, joined
from muster.domain.errors import MusterError

JSON_TYPE = "application/json"
EVENTS_TYPE = "text/event-stream"
LINES_TYPE = "application/x-ndjson"
TEXT_TYPE = "text/plain; charset=utf-8"
FIRST_WITHIN = 1.0
"""Seconds for which the status of a stream waits for its first item, so that it tells what goes wrong at once."""
SILENCE = 15.0
"""Seconds after which a stream of events says that it is still there."""


# A thousand jobs shrink to a ninth in 7 ms, and a stream needs 32 KiB: higher levels and larger windows gain little.
_LEVEL = 1
_GZIP_WINDOW = 16 + 12
_MEMORY = 5

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamItem:
    """Something that a stream tells."""

    value: object
    name: str
    """The kind of thing that it is; readers of server-sent events can listen for it."""
    id: str = ""
    """What a reader shows to go on after it (`Last-Event-ID`); empty: nothing."""


def one(
    request: Request, value: object, status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> Response:
    """One value. Its ETag follows from what it says; who has that very one gets 304 and no body."""
    body = encoded(value)
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    sent = {"ETag": tag, **(headers or {})}
    known = request.headers.get("if-none-match", "")
    if request.method == "GET" and tag in {each.strip().removeprefix("W/") for each in known.split(",")}:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=sent)
    return Response(body, status, sent, media_type=JSON_TYPE)


def many(items: Iterable[object], next_page: str | None = None) -> Response:
    """A list; `next` leads to the part after it, and is empty after the last one."""
    return Response(encoded({"items": list(items), "next": next_page or ""}), media_type=JSON_TYPE)


def many_encoded(items: Sequence[bytes], next_page: str) -> Response:
    """A list of values that are JSON already, as `many`."""
    return Response(b'{"items":' + joined(items) + b',"next":' + encoded(next_page) + b"}", media_type=JSON_TYPE)


async def stream(request: Request, told: AsyncGenerator[StreamItem, None]) -> Response:
    """What is told, as server-sent events where the caller accepts them, else a line of JSON each.

    Raises what goes wrong at the beginning.
    """
    told = await begun(told)
    if EVENTS_TYPE in request.headers.get("accept", ""):
        if "gzip" in request.headers.get("accept-encoding", ""):
            packed = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
            return StreamingResponse(_packed(_as_events(told)), headers=packed, media_type=EVENTS_TYPE)
        return StreamingResponse(_as_events(told), media_type=EVENTS_TYPE)
    return StreamingResponse(_as_lines(told), media_type=LINES_TYPE)


async def begun(told: AsyncGenerator[Item, None]) -> AsyncGenerator[Item, None]:
    """The same stream, once it has told something or has been quiet for a moment; raises what goes wrong until then."""
    first = asyncio.create_task(anext(told), name="first of a stream")
    try:
        await asyncio.wait([first], timeout=FIRST_WITHIN)
    except asyncio.CancelledError:
        first.cancel()
        raise
    if first.done() and not isinstance(first.exception(), (StopAsyncIteration, NoneType)):
        first.result()
    return _continued(first, told)


async def _continued(first: "asyncio.Task[Item]", told: AsyncGenerator[Item, None]) -> AsyncGenerator[Item, None]:
    try:
        with suppress(StopAsyncIteration):
            yield await first
        async with aclosing(told):
            async for each in told:
                yield each
    finally:
        first.cancel()


async def _as_lines(told: AsyncGenerator[StreamItem, None]) -> AsyncIterator[bytes]:
    try:
        async with aclosing(told):
            async for each in told:
                yield encoded(each.value) + b"\n"
    except MusterError as error:  # the status was sent long ago
        yield encoded({"problem": problem_of(error)}) + b"\n"


async def _packed(pieces: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    """Each piece under gzip, at once: its reader waits for none that comes later."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP_WINDOW, _MEMORY)
    async with aclosing(pieces):
        async for piece in pieces:
            yield packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)
    yield packer.flush()


async def _as_events(told: AsyncGenerator[StreamItem, None]) -> AsyncGenerator[bytes, None]:
    """See https://html.spec.whatwg.org/multipage/server-sent-events.html for the form."""
    upcoming: asyncio.Task[StreamItem] | None = None
    try:
        while True:
            upcoming = upcoming or asyncio.create_task(anext(told), name="next event of a stream")
            done, _ = await asyncio.wait([upcoming], timeout=SILENCE)
            if not done:
                yield b": still here\n\n"
                continue
            each, upcoming = upcoming.result(), None
            place = f"id: {each.id}\n" if each.id else ""
            yield f"{place}event: {each.name}\ndata: ".encode() + encoded(each.value) + b"\n\n"
    except StopAsyncIteration:
        upcoming = None
        yield b"event: end\ndata: {}\n\n"
    except MusterError as error:
        upcoming = None
        yield b"event: problem\ndata: " + encoded(problem_of(error)) + b"\n\n"
    finally:
        if upcoming is not None:
            upcoming.cancel()
            await asyncio.wait([upcoming])
        await told.aclose()
