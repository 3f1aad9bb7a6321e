"""Supervisors that wait for work, each in cgroups that its next program gets.

While the kernel moves a process into a cgroup, nobody on the node can fork: at the start of a gang that is felt, in a
quiet moment before it is not. So a supervisor whose program has left nothing stays where it is.
"all started with all addresses, 32 executions, API: Muster / (srun + PMI2)" of `make bench ONLY=gangs` pays for this.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress

from agent.runtimes.kernel.cgroups import CgroupLimits, Cgroups
from agent.runtimes.process.launcher import Launcher, Supervisor
from agent.runtimes.process.order import paths_of
from muster.domain.jobs.failure import ExecutionError

SPARE_SUPERVISORS = 2
"""Supervisors that are made before they are needed."""

KEPT_SUPERVISORS = 8
"""Supervisors that wait for work after their first, at most: as many as a node with eight GPUs may need at once."""

REFILL_AFTER = 0.5
"""Seconds after the last one was taken; a gang has started by then."""


class SpareSupervisors:
    """The supervisors of one node that have nothing to do; launchers may serve several nodes."""

    def __init__(self, launcher: Launcher, cgroups: Cgroups | None = None, wanted: int = SPARE_SUPERVISORS) -> None:
        self._launcher = launcher
        self.cgroups = cgroups or Cgroups((), "")
        """The cgroups of the node."""
        self._wanted = wanted
        self.waiting: deque[Supervisor] = deque()
        """Supervisors that have nothing to do; the first one is taken next."""
        self._refilling: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Have the launcher there by the time it is needed, and supervisors with it."""
        self._launcher.start()
        self._refill_soon()

    def take(self) -> Supervisor:
        """One that was made before, as a rule; others are made for those who come next. Raises ExecutionError."""
        found = self.waiting.popleft() if self.waiting else self._launcher.make()
        self._refill_soon()
        return found

    def make(self) -> Supervisor:
        """One that nothing was told yet. Raises ExecutionError."""
        return self._launcher.make()

    def take_back(self, supervisor: Supervisor, limits: CgroupLimits) -> bool:
        """Have it do something else, as nothing is left of what it did; whether its cgroups are in use again.

        `limits`: those that its cgroups have.
        """
        if not self._launcher.runs or len(self.waiting) >= KEPT_SUPERVISORS:
            supervisor.close()
            return False
        kept = self._freed(paths_of(supervisor.groups), limits)
        if not kept:
            supervisor.enter(())
        supervisor.renew()
        self.waiting.appendleft(supervisor)
        self._refill_soon()
        return kept

    def refill(self) -> None:
        """Have spare ones, each in cgroups of its own, without waiting for them."""
        with suppress(ExecutionError):  # whoever needs one hears of it then
            while len(self.waiting) < self._wanted:
                self.waiting.append(self._launcher.make())
        for supervisor in self.waiting:
            if not supervisor.groups:
                with suppress(OSError):  # whoever gets it hears of it then
                    supervisor.enter(self.cgroups.make())

    async def close(self) -> None:
        """End those that wait and their launcher, and remove their cgroups. Harmless when repeated."""
        if self._refilling is not None:
            self._refilling.cancel()
        left = [*self.waiting]
        self.waiting.clear()
        for supervisor in left:
            supervisor.close()
        await self._launcher.close()
        await asyncio.to_thread(self._remove, left)

    def _refill_soon(self) -> None:
        """Have spare ones soon, but let those who want to start something go first."""
        if self._refilling is not None:
            self._refilling.cancel()
        if self._wanted:
            self._refilling = asyncio.get_running_loop().call_later(REFILL_AFTER, self.refill)

    def _freed(self, groups: Sequence[str], limits: CgroupLimits) -> bool:
        """Whether these cgroups serve for any program from here on."""
        try:
            return self.cgroups.renew(groups, limits)
        except OSError:
            return False

    def _remove(self, closed: Iterable[Supervisor]) -> None:
        for supervisor in closed:
            self.cgroups.remove(paths_of(supervisor.groups))
