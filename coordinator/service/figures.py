"""Figures of this coordinator itself, for whoever watches it."""

import os
import time
from pathlib import Path

from coordinator.clock import wall_time
from coordinator.engine.engine import Engine
from coordinator.service.operations import Operations
from coordinator.trust.caller import Caller
from muster.domain.telemetry.coordinator_figures import CoordinatorFigures

_RESIDENT = 1
"""The field of `/proc/self/statm` that counts the pages in memory: proc_pid_statm(5)."""


class FigureOperations:
    """What callers may know of how the coordinator is."""

    def __init__(self, operations: Operations, engine: Engine) -> None:
        self._operations = operations
        self._engine = engine
        self._began = wall_time()

    async def show(self, caller: Caller) -> CoordinatorFigures:
        """The figures of this very moment."""
        async with self._operations.begin(caller, "coordinator.show"):
            work = self._engine.work
            return CoordinatorFigures(
                began=self._began,
                turns=work.turns,
                commits=tuple(work.commits.counts),
                commit_seconds=work.commits.seconds,
                waiting=work.waiting(),
                streams=len(self._engine.streams),
                memory=_resident(),
                cpu_seconds=time.process_time(),
            )


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[_RESIDENT]) * os.sysconf("SC_PAGE_SIZE")
