"""A person who works in Jupyter Lab with Debian's chromium."""

import asyncio
import json
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

WITHIN = 120.0
"""Seconds for anything that is done in the page, far more than any needs."""

PROGRAM = Path(__file__).with_name("programs") / "notebook_page.py"


class Notebook:
    """A page of Jupyter Lab, and a notebook in it once it was opened."""

    def __init__(self, process: Process) -> None:
        self._process = process

    async def open(self, url: str) -> str:
        """Open a new notebook at the Jupyter Lab of this address; the page's title."""
        return str(await self._does("open", url))

    async def run(self, code: str) -> str:
        """What a new cell shows with this code, once it has ended."""
        return str(await self._does("run", code))

    async def sockets(self) -> list[bool]:
        """Whether each WebSocket to a kernel that there ever was is still open, the oldest first."""
        found: list[bool] = await self._does("sockets")  # type: ignore[assignment]  # the program's own list
        return found

    async def _does(self, *words: str) -> object:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(words)}\n".encode())
        async with asyncio.timeout(WITHIN):
            answer = await self._process.stdout.readline()
        assert answer, f"the browser has ended: {words}"
        return json.loads(answer)


def page_program() -> tuple[str, ...]:
    """The words that start a page."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium")
    return sys.executable, str(PROGRAM), chromium


@asynccontextmanager
async def notebook(program: tuple[str, ...]) -> AsyncIterator[Notebook]:
    """A browser with an empty page, until the context ends."""
    process = await asyncio.create_subprocess_exec(*program, stdin=PIPE, stdout=PIPE)
    try:
        yield Notebook(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
