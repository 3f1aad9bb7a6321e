"""An editor that works on a host over the stock ssh, as a replay of what its extension for that sends and expects."""

import asyncio
import io
import re
import shlex
import tarfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.integration.ssh_hosts import WITHIN, SshHost

FILES = Path(__file__).with_name("editor")
COMMIT = "18e3a1ec544e6907be1e944a94c496e302073435"
MARK = "c9de35c12409"
LONGEST_LINE = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class EditorWindow:
    """A window that has found its server."""

    process: Process
    """The `ssh` of the window."""
    proxy: int
    """The port here through which it reaches all of the host."""
    told: Mapping[str, str]
    """What the script has told at its end."""
    said: str
    """All that the script said before."""

    @property
    def port(self) -> int:
        """Where the server listens there."""
        return int(self.told["listeningOn"].rpartition(":")[2])

    @asynccontextmanager
    async def connected(self, session: str) -> AsyncIterator["EditorConnection"]:
        """A connection to the server through SOCKS, in one of its sessions."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.proxy, limit=LONGEST_LINE)
        try:
            async with asyncio.timeout(WITHIN):
                writer.write(b"\x05\x01\x00")
                assert await reader.readexactly(2) == b"\x05\x00"
                host = self.told["listeningOn"].rpartition(":")[0].encode()
                writer.write(b"\x05\x01\x00\x03" + bytes([len(host)]) + host + self.port.to_bytes(2, "big"))
                assert (await reader.readexactly(10))[:2] == b"\x05\x00"
            writer.write(f"{self.told['execServerToken']} {session}\n".encode())
            yield EditorConnection(reader, writer)
        finally:
            writer.close()


class EditorConnection:
    """One connection of a window to its server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def asks(self, line: str) -> str:
        """What the server answers."""
        async with asyncio.timeout(WITHIN):
            self._writer.write(f"{line}\n".encode())
            return (await self._reader.readline()).decode().rstrip("\n")


@asynccontextmanager
async def window(host: SshHost, proxy: int, *options: str, shell: str = "bash") -> AsyncIterator[EditorWindow]:
    """A window on the host, once its server is reached; it ends as one that is closed."""
    async with host.started("-T", *options, "-D", str(proxy), host.name, shell) as process:
        assert process.stdin is not None
        process.stdin.write(_script(host).encode())
        said = await _until(process, f"{MARK}: running\n")
        found = await _until(process, f"{MARK}: start\n", f"{MARK}:trigger_server_download_end\n")
        if found.endswith("download_end\n"):
            await _send_archive(host, _told(found), *options)
            said, found = said + found, await _until(process, f"{MARK}: start\n")
        told = _told(await _until(process, f"{MARK}: end\n"))
        assert told["exitCode"] == "0", told
        yield EditorWindow(process=process, proxy=proxy, told=told, said=said + found)


def _script(host: SshHost) -> str:
    words = {"MARK": MARK, "COMMIT": COMMIT, "FOLDER": shlex.quote(str(folder(host)))}
    return re.sub("@([A-Z]+)@", lambda found: words[found[1]], (FILES / "bootstrap.sh").read_text())


def folder(host: SshHost) -> Path:
    """Where the server is installed."""
    return host.execution / ".editor server"


async def _send_archive(host: SshHost, told: Mapping[str, str], *options: str) -> None:
    """Copy the archive with the server there, and then the file that says that it is whole."""
    archive = host.config.with_name("cli.tar.gz")
    with tarfile.open(archive, "w:gz") as packed:
        content = b"#!/usr/bin/python3\n" + (FILES / "server.py").read_bytes()
        entry = tarfile.TarInfo("code")
        entry.size, entry.mode = len(content), 0o755
        packed.addfile(entry, io.BytesIO(content))
    done = archive.with_name("done")
    done.touch()
    there = f"{told['destFolder']}{told['destFolder2']}"
    for file, target in ((archive, there), (done, f"{there}.done")):
        copied = await host.run("-q", *options, str(file), f"{host.name}:{target}", program="scp")
        assert (copied.code, copied.errors) == (0, ""), copied


async def _until(process: Process, *ends: str) -> str:
    """All that is said up to one of these lines."""
    assert process.stdout is not None
    said = ""
    while not said.endswith(ends):
        line = await process.stdout.readline()
        assert line, said
        said += line.decode()
    return said


def _told(said: str) -> dict[str, str]:
    return dict(re.findall("^(.+?)==(.*)==$", said, re.MULTILINE))
