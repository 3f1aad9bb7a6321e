"""An editor that works in an execution as over ssh anywhere: it brings its server, and talks to it through SOCKS."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import psutil
import pytest

from tests.integration.attaching import free_port
from tests.integration.editors import EditorConnection, EditorWindow, window
from tests.integration.ssh_hosts import SshHost

CONNECTIONS = 20
"""So many an editor with a few extensions and terminals has."""


@asynccontextmanager
async def connections(editor: EditorWindow) -> AsyncIterator[list[EditorConnection]]:
    """Connections of sessions of their own, all made at once."""
    async with AsyncExitStack() as stack:
        opening = (stack.enter_async_context(editor.connected(f"s{number}")) for number in range(CONNECTIONS))
        yield await asyncio.gather(*opening)


async def asked(each: list[EditorConnection], line: str) -> list[str]:
    return await asyncio.gather(*(connection.asks(line) for connection in each))


@pytest.mark.parametrize("shell", ["bash", "sh"])
async def test_an_editor_brings_its_server_and_has_twenty_connections_to_it(host: SshHost, shell: str) -> None:
    async with window(host, free_port(), shell=shell) as editor, connections(editor) as many:
        large = "x" * 100_000
        assert "trigger_server_download" in editor.said
        assert (editor.told["didLocalDownload"], editor.told["arch"]) == ("1", os.uname().machine)
        assert await asked(many, "one") == ["1 one"] * CONNECTIONS
        assert await asked(many, large) == [f"2 {large}"] * CONNECTIONS


async def test_an_editor_whose_ssh_was_killed_finds_its_server_and_its_sessions_again(host: SshHost) -> None:
    async with window(host, free_port()) as editor, editor.connected("s") as connection:
        assert await connection.asks("one") == "1 one"
        server = psutil.Process(int(editor.told["serverPid"]))
        editor.process.kill()
        await editor.process.wait()

    async with window(host, free_port()) as again, again.connected("s") as connection:
        assert "found a server that runs" in again.said
        assert again.told == {**editor.told, "didLocalDownload": "0"}
        assert server.is_running()
        assert await connection.asks("two") == "2 two"


async def test_a_second_window_has_the_same_server(host: SshHost) -> None:
    async with window(host, free_port()) as one, window(host, free_port()) as other:
        assert other.told["serverPid"] == one.told["serverPid"]
        async with one.connected("s") as connection, other.connected("s") as second:
            assert (await connection.asks("one"), await second.asks("two")) == ("1 one", "2 two")


async def test_all_of_it_goes_over_one_connection_that_is_shared(host: SshHost, tmp_path: Path) -> None:
    shared = ("-o", "ControlMaster=auto", "-o", f"ControlPath={tmp_path / 'c'}", "-o", "ControlPersist=yes")
    try:
        async with window(host, free_port(), *shared) as editor, connections(editor) as many:
            assert (await host.run(*shared, "-O", "check", host.name)).code == 0
            assert await asked(many, "one") == ["1 one"] * CONNECTIONS
    finally:
        await host.run(*shared, "-O", "exit", host.name)


async def test_a_relay_that_is_killed_costs_an_editor_none_of_its_connections(host: SshHost) -> None:
    async with window(host, free_port()) as editor, connections(editor) as many:
        assert await asked(many, "one") == ["1 one"] * CONNECTIONS
        host.shared.does(host.shared.fleet.kill("relay"))
        answers = asyncio.create_task(asked(many, "two"))
        host.shared.does(host.shared.fleet.start_relay())
        assert await answers == ["2 two"] * CONNECTIONS
