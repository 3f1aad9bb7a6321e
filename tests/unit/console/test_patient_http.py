"""A connection is closed whose request does not come whole in time, and none that has one."""

import asyncio
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from console.api.listener import HEAD_PATIENCE, PatientHttp
from tests.unit.leaping_time import run_leaping

WHOLE = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


class Line(asyncio.Transport):
    """A connection that keeps what is said, and when it was closed."""

    def __init__(self) -> None:
        super().__init__({"sockname": ("127.0.0.1", 1), "peername": ("127.0.0.1", 2)})
        self.said = b""
        self.closed_at: float | None = None

    def write(self, data: Any) -> None:
        self.said += data

    def close(self) -> None:
        self.closed_at = self.closed_at or asyncio.get_running_loop().time()

    def is_closing(self) -> bool:
        return self.closed_at is not None


async def slow(scope: Any, receive: Callable[[], Any], send: Callable[[Any], Any]) -> None:  # noqa: ARG001 - as ASGI has it
    """An application that takes ten times as long as a request may."""
    await asyncio.sleep(10 * HEAD_PATIENCE)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


def spoken(*pieces: tuple[float, bytes]) -> Line:
    """The connection after these pieces, each after a pause, and a long time."""
    line = Line()

    async def speak() -> None:
        config = uvicorn.Config(slow, lifespan="off", log_config=None, timeout_keep_alive=100_000)
        config.load()
        http = PatientHttp(config, ServerState(), {})
        http.connection_made(line)
        for pause, piece in pieces:
            await asyncio.sleep(pause)
            if not line.is_closing():
                http.data_received(piece)
        await asyncio.sleep(100 * HEAD_PATIENCE)

    run_leaping(speak())
    return line


def test_a_connection_without_a_request_is_closed() -> None:
    assert spoken().closed_at == HEAD_PATIENCE


def test_a_head_that_comes_bit_by_bit_has_to_be_whole_in_time() -> None:
    assert (
        spoken(*((10, each) for each in (b"GET / ", b"HTTP/1.1\r\n", b"Host: a\r\n", b"\r\n"))).closed_at
        == HEAD_PATIENCE
    )


def test_a_request_that_takes_long_to_answer_is_answered() -> None:
    line = spoken((10, WHOLE))
    assert line.said.startswith(b"HTTP/1.1 200")
    assert line.closed_at is None


def test_the_next_request_has_to_be_whole_in_time_too() -> None:
    later = 20 * HEAD_PATIENCE
    line = spoken((0, WHOLE), (later, b"GET /"))
    assert line.said.count(b"HTTP/1.1 200") == 1
    assert line.closed_at == later + HEAD_PATIENCE
