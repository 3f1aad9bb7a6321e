"""How an agent ends all that an execution of plain processes has started."""

import asyncio
import signal as signals
import time
from contextlib import suppress
from datetime import timedelta

from agent.executions.held_resources import KILL_LIMIT
from agent.executions.layout import GRACE, ExecutionDirectory
from agent.executions.whole_file import write_whole
from agent.runtimes.kernel.subtree import STRIKE_PAUSE, Subtree
from agent.runtimes.process.program import FollowedProgram
from muster.domain.jobs.failure import ExecutionError
from muster.domain.jobs.stopping.preemption import PreemptSignal

PRIVATE_GRACE = 0o600


def terminate(directory: ExecutionDirectory, subtree: Subtree, grace: timedelta, signal: PreemptSignal | None) -> None:
    """Send the signal if there is one, and have the supervisor give what outlives the program the grace as well."""
    until = time.clock_gettime(time.CLOCK_BOOTTIME) + grace.total_seconds()
    with suppress(OSError):  # a full disk only shortens the grace of what outlives the program
        write_whole(directory.path / GRACE, str(until).encode(), PRIVATE_GRACE)
    if signal is not None:
        subtree.signal(signals.Signals[f"SIG{signal}"])


async def end_supervisor(program: FollowedProgram) -> None:
    """End one that still has something to do for a program of which nothing is left."""
    if not program.gone.is_set():
        program.supervisor.kill()
        async with asyncio.timeout(KILL_LIMIT):
            await program.gone.wait()


async def killed(subtree: Subtree, ended: asyncio.Future[int | ExecutionError] | None = None) -> tuple[int, ...]:
    """Kill all of a subtree, until its supervisor has told its end; the pids that survive it, none as a rule."""
    limit = asyncio.get_running_loop().time() + KILL_LIMIT
    while await asyncio.to_thread(subtree.strike) or not (ended is None or ended.done()):
        if asyncio.get_running_loop().time() >= limit:
            return tuple(each.pid for each in await asyncio.to_thread(subtree.members))
        if ended is None or ended.done():
            await asyncio.sleep(STRIKE_PAUSE)
        else:
            await asyncio.wait((ended,), timeout=STRIKE_PAUSE)
    return ()
