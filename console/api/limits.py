"""What every request passes before anybody looks at what it asks: names, sizes, times, and how much is open at once."""

import asyncio
from collections import Counter
from collections.abc import Collection
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from console.api.problems import refusal

MAX_BODY = 6 * 2**20
"""Bytes of a body: a job file with its files, or a thousand jobs."""
MAX_DISCARDED = 64 * 2**20
"""Bytes of a body that is too large which are read all the same: few clients hear before they have sent all."""
BODY_PATIENCE = 30.0
"""Seconds in which a body has to arrive."""
DIGITS = 18
"""Digits of a length that is looked at; a longer one is too large, whatever it says."""
REQUESTS = 1_200
"""Requests at once, streams included."""

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_HEADERS_OVER_TLS = _HEADERS | {"Strict-Transport-Security": "max-age=31536000"}
"""The same where browsers are also to keep for a year that this name is asked by HTTPS alone."""


class Threshold:
    """Lets requests in that may be answered, whole; all others are refused at once."""

    def __init__(self, app: ASGIApp, hosts: Collection[str], answered: Counter[int]) -> None:
        """`answered` counts answers by their status."""
        self._app = app
        self._hosts = hosts
        self._answered = answered
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, answer = Headers(scope=scope), None
        length = headers.get("content-length", "0")
        if _name(headers.get("host", "")) not in self._hosts:
            answer = _refused(HTTPStatus.MISDIRECTED_REQUEST, "host", "nobody of this name is here; see --url")
        elif self._open >= REQUESTS:
            answer = _refused(HTTPStatus.SERVICE_UNAVAILABLE, "too-much", f"{REQUESTS} requests are open already")
        elif not length.isdecimal() or len(length) > DIGITS or int(length) > MAX_DISCARDED:
            answer = _too_large()
        self._open += 1
        try:
            await self._answer(answer, scope, receive, self._counted(_hardened(send, scope["scheme"])))
        finally:
            self._open -= 1

    def _counted(self, send: Send) -> Send:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._answered[message["status"]] += 1
            await send(message)

        return sent

    async def _answer(self, answer: ASGIApp | None, scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        if answer is None:
            try:
                async with asyncio.timeout(BODY_PATIENCE):
                    body = await _body(receive)
            except TimeoutError:
                answer = _refused(HTTPStatus.REQUEST_TIMEOUT, "late", f"the body took more than {BODY_PATIENCE:.0f} s")
            except _TooLargeError:
                answer = _too_large()
            except _GoneError:
                return
        await (answer or self._app)(scope, _replaying(body, receive), send)


class _TooLargeError(Exception):
    pass


class _GoneError(Exception):
    pass


async def _body(receive: Receive) -> bytes:
    pieces, size, more = list[bytes](), 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _GoneError
        piece = message.get("body", b"")
        size += len(piece)
        if size <= MAX_BODY:
            pieces.append(piece)
        elif size > MAX_DISCARDED:
            raise _TooLargeError
        more = message.get("more_body", False)
    if size > MAX_BODY:
        raise _TooLargeError
    return b"".join(pieces)


def _replaying(body: bytes, receive: Receive) -> Receive:
    """What the application receives: the body as a whole, and then what the server says."""
    left = [body]

    async def replay() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        return await receive()

    return replay


def _hardened(send: Send, scheme: str) -> Send:
    added = _HEADERS_OVER_TLS if scheme == "https" else _HEADERS

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in added.items():
                headers.setdefault(name, value)
        await send(message)

    return sent


def _too_large() -> ASGIApp:
    return _refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", f"a body has at most {MAX_BODY} bytes")


def _refused(status: HTTPStatus, word: str, detail: str) -> ASGIApp:
    response: Response = refusal(status, word, detail)
    response.headers["Connection"] = "close"  # what comes after a body that was not read is no request
    return response


def _name(host: str) -> str:
    """The name of a `Host` header without its port."""
    return host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.rpartition(":")[0] or host
