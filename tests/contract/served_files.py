"""Files that the real program serves from a directory, for a client of ours."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from muster.client.files.remote_tree import RemoteTree
from muster.client.files.sftp import SftpClient, sftp_over
from tests.contract.door_side import ANSWER_LIMIT, program

_PIECE = 256 * 1024


class ProgramBytes:
    """The standard streams of a program as a way to files."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def read(self) -> bytes:
        assert self.process.stdout is not None
        return await self.process.stdout.read(_PIECE)

    async def write(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        await self.process.stdin.drain()

    async def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(ANSWER_LIMIT):
            await self.process.wait()


async def started(directory: Path) -> ProgramBytes:
    """The program, which serves files from there."""
    copied = directory.parent / "muster-inside"
    if not copied.exists():
        shutil.copy(program(), copied)
    piped = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        str(copied), "files", stdin=piped, stdout=piped, cwd=directory, limit=4 * _PIECE
    )
    return ProgramBytes(process)


@asynccontextmanager
async def connected(directory: Path) -> AsyncIterator[SftpClient]:
    """A client of the program."""
    async with sftp_over(await started(directory)) as client:
        yield client


@asynccontextmanager
async def served_tree(directory: Path, path: str = ".") -> AsyncIterator[RemoteTree]:
    """A tree that the program serves."""
    async with connected(directory) as client:
        yield RemoteTree(client, path, f"dev:{path}")


def everything(directory: Path) -> dict[str, object]:
    """What a directory holds: contents of files, targets of links, None for directories; with modes and seconds."""
    return {str(path.relative_to(directory)): _what(path) for path in _below(directory)}


def _below(directory: Path) -> Iterator[Path]:
    for path in directory.iterdir():
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)


def _what(path: Path) -> object:
    if path.is_symlink():
        return path.readlink()
    status = path.stat()
    content = None if path.is_dir() else path.read_bytes()
    return content, status.st_mode, int(status.st_mtime)
