"""Words on how far a command is, for whoever waits longer than a second."""

import time
from typing import TextIO


class BackupProgress:
    """Says at most once a second which part is at hand, and how much of it is done."""

    def __init__(self, output: TextIO, program: str) -> None:
        self._output = output
        self._program = program
        self._next = time.monotonic() + 1.0

    def tell(self, part: str, done: int, whole: int) -> None:
        """So many bytes of a part are done."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + 1.0
            percent = 100 * done // whole if whole else 100
            self._output.write(f"{self._program}: {part}: {done >> 20} of {whole >> 20} MiB ({percent} %)\n")
            self._output.flush()
