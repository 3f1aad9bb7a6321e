"""Connections in the network of an execution, as its agent has them from the companion."""

import asyncio
import socket
from ipaddress import ip_address
from pathlib import Path

import pytest

from agent.attach.companion import Companion
from tests.integration.gang_nodes import GangNode, three

HERE = ip_address("127.0.0.1")


def companion_of(node: GangNode, rank: int) -> Companion:
    return node.site.companions[node.execution(rank)]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(await reader.read())
    writer.close()


async def test_a_connection_carries_bytes_both_ways(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes, await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection(sock=await companion_of(nodes["b"], 1).connect(HERE, port))
        writer.write(b"there and back")
        writer.write_eof()
        assert await reader.read() == b"there and back"
        writer.close()


async def test_many_connections_at_once_each_get_their_own(tmp_path: Path) -> None:
    async with three(tmp_path) as nodes, await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        port, companion = server.sockets[0].getsockname()[1], companion_of(nodes["b"], 1)

        async def said(number: int) -> bytes:
            reader, writer = await asyncio.open_connection(sock=await companion.connect(HERE, port))
            writer.write(b"%d" % number)
            writer.write_eof()
            try:
                return await reader.read()
            finally:
                writer.close()

        assert await asyncio.gather(*map(said, range(50))) == [b"%d" % number for number in range(50)]


async def test_where_nothing_listens_that_is_the_error(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    async with three(tmp_path) as nodes:
        with pytest.raises(ConnectionRefusedError):
            await companion_of(nodes["a"], 0).connect(HERE, port)
