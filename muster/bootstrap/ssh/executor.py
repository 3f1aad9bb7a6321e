"""How commands get to a computer and what they answer, whatever is between; and how one becomes root there."""

import asyncio
import os
import shlex
import signal
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from muster.domain.errors import MusterError, PermissionDeniedError, UnavailableError

QUICK = 30.0
"""Seconds for a command that only looks or moves a file."""
TRANSFER = 900.0
"""Seconds for a bundle on its way; some hundred megabytes over a slow line."""

Stdin: TypeAlias = bytes | Path
"""What a command reads: these bytes, or what is in this file of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutput:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def last_words(self) -> str:
        """The end of what it said, on one line."""
        said = [line.strip() for line in (self.err or self.out).splitlines() if line.strip()]
        return "; ".join(said[-3:]) or f"exit code {self.code}"


class CommandFailedError(MusterError):
    """A command there ended with something else than 0."""


class Executor(Protocol):
    """Runs commands on one computer."""

    name: str
    """The machine's name, for people."""

    async def run(self, command: str, *, stdin: Iterable[Stdin] = (), limit: float = QUICK) -> CommandOutput:
        """Run a command of the POSIX shell; raises UnavailableError where it has not ended in time."""
        ...

    async def close(self) -> None:
        """Leave."""
        ...


class LocalExecutor:
    """Runs commands on this computer."""

    name = "this computer"

    async def run(self, command: str, *, stdin: Iterable[Stdin] = (), limit: float = QUICK) -> CommandOutput:
        """See Executor."""
        pieces = [part if isinstance(part, bytes) else await asyncio.to_thread(part.read_bytes) for part in stdin]
        pipe = asyncio.subprocess.PIPE
        # A process group of its own: what the shell has started holds the pipes, so that it has to end as well.
        process = await asyncio.create_subprocess_exec(
            "sh", "-c", command, stdin=pipe, stdout=pipe, stderr=pipe, process_group=0
        )
        try:
            async with asyncio.timeout(limit):
                out, err = await process.communicate(b"".join(pieces))
        except TimeoutError:
            raise UnavailableError(f"a command did not end within {limit:g} s") from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        return CommandOutput(
            code=process.returncode or 0, out=out.decode(errors="replace"), err=err.decode(errors="replace")
        )

    async def close(self) -> None:
        """See Executor."""


class Shell:
    """The shell of one computer, as root where that is needed.

    `password` is asked at most once, and only where sudo wants one; it reaches sudo by stdin alone.
    """

    def __init__(self, executor: Executor, password: Callable[[], Awaitable[str]]) -> None:
        self._executor = executor
        self._ask = password
        self._prefix: str | None = None
        self._password = b""

    @property
    def name(self) -> str:
        """The machine's name, for people."""
        return self._executor.name

    async def become_root(self) -> None:
        """Find out how; raises PermissionDeniedError where there is no way."""
        if self._prefix is not None:
            return
        # -k: what sudo remembers of a password counts for neither question, or ours would end up in a command's stdin.
        question = "if [ $(id -u) = 0 ]; then echo root; elif sudo -k -n true 2>/dev/null; then echo free; "
        question += "elif command -v sudo >/dev/null; then echo password; else echo none; fi"
        match (await self._checked(question)).out.strip():
            case "root":
                self._prefix = ""
            case "free":
                self._prefix = "sudo -k -n -- "
            case "password":
                await self._prove(f"{await self._ask()}\n".encode())
            case _:
                raise PermissionDeniedError("is not root there, and there is no sudo; log in as root or install sudo")

    async def run(self, command: str, *, stdin: Iterable[Stdin] = (), limit: float = QUICK) -> CommandOutput:
        """Run a command as who has logged in."""
        return await self._executor.run(f"exec sh -c {shlex.quote(command)}", stdin=stdin, limit=limit)

    async def root(self, command: str, *, stdin: Iterable[Stdin] = (), limit: float = QUICK) -> CommandOutput:
        """Run a command as root."""
        await self.become_root()
        if not self._prefix:
            return await self.run(command, stdin=stdin, limit=limit)
        given = (self._password, *stdin) if self._password else stdin
        return await self._executor.run(f"{self._prefix}sh -c {shlex.quote(command)}", stdin=given, limit=limit)

    async def must(self, command: str, *, stdin: Iterable[Stdin] = (), limit: float = QUICK) -> str:
        """What a command as root prints; raises CommandFailedError with its last words."""
        output = await self.root(command, stdin=stdin, limit=limit)
        if output.code:
            raise CommandFailedError(output.last_words)
        return output.out

    async def put(self, content: Stdin, path: str, *, mode: int, owner: str = "root:root") -> None:
        """Write a file as root; it is there as a whole or not at all, and at no time readable by more than `mode`."""
        part, there = shlex.quote(f"{path}.part"), shlex.quote(path)
        size = len(content) if isinstance(content, bytes) else (await asyncio.to_thread(content.stat)).st_size
        # A connection that breaks looks like the end of the file.
        whole = f'[ "$(wc -c <{part})" -eq {size} ]'
        await self.must(
            f"umask 077 && rm -f {part} && cat > {part} && {whole} && chown {owner} {part} && chmod {mode:o} {part} "
            f"&& mv -f {part} {there}",
            stdin=(content,),
            limit=TRANSFER,
        )

    async def close(self) -> None:
        """Leave."""
        await self._executor.close()

    async def _checked(self, command: str) -> CommandOutput:
        output = await self.run(command)
        if output.code:
            raise CommandFailedError(output.last_words)
        return output

    async def _prove(self, password: bytes) -> None:
        prefix = "sudo -k -S -p '' -- "
        output = await self._executor.run(f"{prefix}true", stdin=(password,))
        if output.code:
            raise PermissionDeniedError("sudo does not take this password, or does not let this user be root")
        self._prefix, self._password = prefix, password
