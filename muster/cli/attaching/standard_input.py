"""Standard input piece by piece, whatever it is: a file cannot be waited for, so that a thread reads."""

import asyncio
import os
import sys
import threading

STDIN_PIECE = 64 * 1024
"""Bytes of one piece."""


class StandardInput:
    """Reads ahead one piece, from the first `read` on."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue()
        self._wanted = threading.Semaphore(0)
        self._begun = False

    async def read(self) -> bytes:
        """The next piece; empty at the end."""
        if not self._begun:
            self._begun = True
            threading.Thread(target=self._read_all, name="standard input", daemon=True).start()
        self._wanted.release()
        return await self._pieces.get()

    def _read_all(self) -> None:
        data = b"more"
        while data:
            self._wanted.acquire()
            try:
                data = os.read(sys.stdin.fileno(), STDIN_PIECE)
            except (OSError, ValueError):
                data = b""
            try:
                self._loop.call_soon_threadsafe(self._pieces.put_nowait, data)
            except RuntimeError:
                return  # the program ends
