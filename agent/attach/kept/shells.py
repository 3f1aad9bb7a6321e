"""The kept shells of one execution: they go on when nobody is attached, and when the agent is another one."""

import asyncio
import signal
from collections.abc import Awaitable, Callable

from agent.attach.command import LOST_CODE, AttachedCommand
from agent.attach.kept.attachment import KeptAttachment
from agent.attach.kept.program import KeptProgram
from agent.core.door.kept_output import KeptOutput
from agent.core.door.packets import CommandWanted, GangExit
from muster.domain.attachments.frame import LARGEST_CHANNEL_DATA, MOST_KEPT_SHELLS, KeptShell
from muster.domain.visible_text import visible

HANG_UP_PATIENCE = 2.0
"""Seconds in which a shell that is told to hang up ends by itself; then its terminal is gone."""

Run = Callable[[CommandWanted, int], Awaitable[AttachedCommand]]
"""Starts a command; no piece of its output is larger than the number."""


class TooManyKeptError(Exception):
    """The execution has as many kept shells as it may have."""


class KeptShells:
    """Makes them, gives them to whoever comes, and takes those of an agent before."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._shells: dict[str, KeptProgram] = {}
        self._pumps: dict[str, asyncio.Task[None]] = {}
        self._making = asyncio.Lock()

    async def attach(self, wanted: CommandWanted) -> KeptAttachment:
        """The shell of the name that is wanted: the one that is there with the size that is wanted, else a new one.

        Raises TooManyKeptError, and whatever starting a command raises.
        """
        name = wanted.kept_name
        async with self._making:
            if name not in self._shells:
                if len(self._shells) >= MOST_KEPT_SHELLS:
                    names = ", ".join(sorted(self._shells))
                    text = f"{MOST_KEPT_SHELLS} shells are kept in the execution already: {names}; end one of them"
                    raise TooManyKeptError(text)
                command = await self._run(wanted, LARGEST_CHANNEL_DATA)
                if name not in self._shells:
                    return self._keep(name, command, KeptOutput()).attached()
                command.signal(signal.SIGHUP)  # the companion has just come, and brought the one of the agent before
                command.close()
        shell = self._shells[name]
        shell.redraw(wanted.rows, wanted.columns)
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

    def listed(self) -> tuple[KeptShell, ...]:
        """All of them, by name; user code may have given them other names than people do."""
        return tuple(
            KeptShell(name=visible(name), pid=shell.command.pid, attached=shell.attachment is not None)
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
            self._pumps.pop(name).cancel()  # which lets go of the terminal as soon as nothing waits for that
        self._keep(name, command, KeptOutput() if before is None else before.output)

    async def close(self) -> None:
        """Let go of all of them; they go on, and their companion keeps their terminals."""
        for each in tuple(self._pumps.values()):
            await _stopped(each)

    def _keep(self, name: str, command: AttachedCommand, output: KeptOutput) -> KeptProgram:
        shell = self._shells[name] = KeptProgram(name, command, output)
        pump = asyncio.get_running_loop().create_task(self._read(shell), name=f"kept shell {name}")
        self._pumps[name] = pump
        pump.add_done_callback(lambda _: self._forget(shell, GangExit(code=LOST_CODE)))  # where it had not begun
        return shell

    async def _read(self, shell: KeptProgram) -> None:
        end = GangExit(code=LOST_CODE)
        try:
            end = await shell.pump()
        finally:
            self._forget(shell, end)

    def _forget(self, shell: KeptProgram, end: GangExit) -> None:
        """Have it no more; nobody may attach to it once it was told how it ended."""
        if self._shells.get(shell.name) is shell:
            del self._shells[shell.name], self._pumps[shell.name]
        shell.ended(end)


async def _stopped(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
