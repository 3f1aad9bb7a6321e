"""The kept shells of one execution: they go on when nobody is attached, and when the agent is another one."""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from agent.attach.command import LOST_CODE, AttachedCommand
from agent.attach.kept.attachment import KeptAttachment
from agent.core.door.kept_output import KeptOutput
from agent.core.door.packets import CommandWanted, GangErrorOutput, GangExit, GangOutput
from muster.domain.attachments.frame import LARGEST_CHANNEL_DATA

MOST_KEPT_SHELLS = 8
"""Kept shells of one execution."""

HANG_UP_PATIENCE = 2.0
"""Seconds in which a shell that is told to hang up ends by itself; then its terminal is gone."""

Run = Callable[[CommandWanted, int], Awaitable[AttachedCommand]]
"""Starts a command; no piece of its output is larger than the number."""


class TooManyKeptError(Exception):
    """The execution has as many kept shells as it may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptShellView:
    """A kept shell as it is listed."""

    name: str
    pid: int
    attached: bool


class _Shell:
    """A shell that goes on, and what is kept of it."""

    def __init__(self, name: str, command: AttachedCommand, output: KeptOutput) -> None:
        self.name = name
        self.command = command
        self.output = output
        self.attachment: KeptAttachment | None = None

    def attached(self) -> KeptAttachment:
        """Somebody attaches; who was attached before is no more."""
        if self.attachment is not None:
            self.attachment.leave()
        self.attachment = KeptAttachment(self.command, self.output.replay(), self._detached)
        return self.attachment

    async def pump(self) -> None:
        """Read its terminal until it ends, whoever is attached."""
        end = GangExit(code=LOST_CODE)
        try:
            while not isinstance(piece := await self.command.read(), GangExit):
                await self._take(piece)
            end = piece
        finally:
            self.command.close()
            if self.attachment is not None:
                self.attachment.ended(end)

    async def _take(self, piece: GangOutput | GangErrorOutput) -> None:
        self.output.add(piece.data)
        if self.attachment is not None:
            await self.attachment.give(GangOutput(data=piece.data))

    def _detached(self, attachment: KeptAttachment) -> None:
        if self.attachment is attachment:
            self.attachment = None


class KeptShells:
    """Makes them, gives them to whoever comes, and takes those of an agent before."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._shells: dict[str, _Shell] = {}
        self._pumps: dict[str, asyncio.Task[None]] = {}
        self._making = asyncio.Lock()

    async def attach(self, wanted: CommandWanted) -> KeptAttachment:
        """The shell of the name that is wanted: the one that is there with the size that is wanted, else a new one.

        Raises TooManyKeptError, and whatever starting a command raises.
        """
        name = wanted.kept_name
        async with self._making:
            shell = self._shells.get(name)
            if shell is None:
                if len(self._shells) >= MOST_KEPT_SHELLS:
                    names = ", ".join(sorted(self._shells))
                    text = f"{MOST_KEPT_SHELLS} shells are kept in the execution already: {names}; end one of them"
                    raise TooManyKeptError(text)
                return self._keep(name, await self._run(wanted, LARGEST_CHANNEL_DATA), KeptOutput()).attached()
        shell.command.resize(wanted.rows, max(1, wanted.columns - 1))
        shell.command.resize(wanted.rows, wanted.columns)  # not as before, so that what fills the screen draws it anew
        return shell.attached()

    async def end(self, name: str) -> bool:
        """Have a shell hang up; whether there was one of that name."""
        shell, pump = self._shells.get(name), self._pumps.get(name)
        if shell is None or pump is None:
            return False
        shell.command.signal(signal.SIGHUP)
        await asyncio.wait((pump,), timeout=HANG_UP_PATIENCE)
        await _stopped(pump)
        return True

    def listed(self) -> tuple[KeptShellView, ...]:
        """All of them, by name."""
        return tuple(
            KeptShellView(name=name, pid=shell.command.pid, attached=shell.attachment is not None)
            for name, shell in sorted(self._shells.items())
        )

    def returned(self, name: str, command: AttachedCommand) -> None:
        """Take the terminal of a shell that an earlier agent made, or this one when it lost the companion."""
        before = self._shells.get(name)
        if before is None and len(self._shells) >= MOST_KEPT_SHELLS:
            command.signal(signal.SIGHUP)
            command.close()
            return
        if before is not None:
            self._pumps[name].cancel()
        self._keep(name, command, KeptOutput() if before is None else before.output)

    async def close(self) -> None:
        """Let go of all of them; they go on, and their companion keeps their terminals."""
        for each in tuple(self._pumps.values()):
            await _stopped(each)

    def _keep(self, name: str, command: AttachedCommand, output: KeptOutput) -> _Shell:
        shell = self._shells[name] = _Shell(name, command, output)
        pump = asyncio.get_running_loop().create_task(shell.pump(), name=f"kept shell {name}")
        self._pumps[name] = pump
        pump.add_done_callback(partial(self._over, shell))
        return shell

    def _over(self, shell: _Shell, pump: "asyncio.Task[None]") -> None:
        if self._pumps.get(shell.name) is pump:
            del self._pumps[shell.name], self._shells[shell.name]


async def _stopped(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
