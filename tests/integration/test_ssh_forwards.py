"""Ports of an execution on the user's machine by `ssh -L` and `-D`, and what is refused."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tests.integration.ssh_hosts import SshHost

MUCH = os.urandom(20_000_000)
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def listening(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    """A program in the execution that listens at this port."""

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        finally:
            writer.close()

    async with await asyncio.start_server(served, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


async def answer_at_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Give back what has come, once no more comes."""
    writer.write(await reader.read())
    await writer.drain()


async def connected(port: int) -> Streams:
    return await asyncio.open_connection("127.0.0.1", port)


async def through_socks(proxy: int, host: str, port: int) -> Streams:
    """A connection as a browser makes one over SOCKS 5."""
    reader, writer = await connected(proxy)
    writer.write(b"\x05\x01\x00")
    assert await reader.readexactly(2) == b"\x05\x00"
    writer.write(b"\x05\x01\x00\x03" + bytes([len(host)]) + host.encode() + port.to_bytes(2, "big"))
    assert (await reader.readexactly(10))[:2] == b"\x05\x00"
    return reader, writer


async def exchanged(streams: Streams, given: bytes) -> bytes:
    reader, writer = streams
    writer.write(given)
    writer.write_eof()
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_twenty_connections_at_once_each_end_in_one_direction_first(host: SshHost) -> None:
    here = free_port()
    async with listening(answer_at_the_end) as there, host.forwarding("-L", f"{here}:localhost:{there}"):
        streams = [await connected(here) for _ in range(20)]
        said = await asyncio.gather(*(exchanged(each, b"%d " % number * 50_000) for number, each in enumerate(streams)))
    assert said == [b"%d " % number * 50_000 for number in range(20)]


async def test_a_server_that_has_said_all_still_hears(host: SshHost) -> None:
    heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"all")
        writer.write_eof()
        heard.set_result(await reader.read())

    here = free_port()
    async with listening(serve) as there, host.forwarding("-L", f"{here}:127.0.0.1:{there}"):
        reader, writer = await connected(here)
        assert await reader.read() == b"all"
        writer.write(b"and the answer")
        writer.close()
        assert await heard == b"and the answer"


async def test_much_goes_through_a_connection_both_ways(host: SshHost) -> None:
    here = free_port()
    async with listening(answer_at_the_end) as there, host.forwarding("-L", f"{here}:127.0.0.1:{there}"):
        assert await exchanged(await connected(here), MUCH) == MUCH


async def test_where_nothing_listens_the_connection_ends_and_ssh_says_why(host: SshHost) -> None:
    here, nothing = free_port(), free_port()
    async with host.forwarding("-L", f"{here}:localhost:{nothing}"):
        reader, writer = await connected(here)
        assert await reader.read() == b""
        writer.close()
    assert f"nothing listens at port {nothing} (Connection refused)" in host.said.read_text()


async def test_any_port_is_reached_through_socks(host: SshHost) -> None:
    proxy = free_port()
    async with listening(answer_at_the_end) as there, host.forwarding("-D", str(proxy)):
        assert await exchanged(await through_socks(proxy, "localhost", there), b"by name") == b"by name"
        assert await exchanged(await through_socks(proxy, "127.0.0.1", there), b"by address") == b"by address"


async def test_a_port_that_would_lead_to_this_machine_is_refused_with_a_sentence(host: SshHost) -> None:
    done = await host.ssh("true", "-R", "8080:localhost:80", "-o", "ExitOnForwardFailure=yes")
    assert done.code == 255
    assert "muster: -R is not served: no port 8080 of an execution can lead to this machine" in done.errors


async def test_without_a_need_for_it_such_a_port_only_gives_a_warning(host: SshHost) -> None:
    done = await host.ssh("echo on", "-R", "8080:localhost:80")
    assert (done.code, done.output) == (0, b"on\n")
    assert "-R is not served" in done.errors


async def test_a_socket_in_the_file_system_is_refused_with_a_sentence(host: SshHost) -> None:
    here = free_port()
    async with host.forwarding("-L", f"{here}:/run/docker.sock"):
        reader, writer = await connected(here)
        assert await reader.read() == b""
        writer.close()
    assert "sockets in the file system are not carried (/run/docker.sock)" in host.said.read_text()


async def test_a_connection_with_one_command_is_a_way_in(host: SshHost) -> None:
    async with listening(answer_at_the_end) as there:
        done = await host.run("-W", f"localhost:{there}", host.name, given=b"through")
    assert (done.code, done.output) == (0, b"through")
