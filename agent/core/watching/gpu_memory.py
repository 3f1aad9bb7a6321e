"""Whether executions keep to their portions of GPU memory: what is seen of their processes, and for how long."""

from collections.abc import Sequence
from dataclasses import dataclass

from muster.domain.ids import ExecutionId, GpuUuid

PORTION_PATIENCE = 10.0
"""Seconds for which an execution may use more than its portion; what a program needs for a moment harms nobody."""
CONTEXT_MEMORY = 512 << 20
"""Bytes that each of its processes may use besides: what a CUDA context takes, of which frameworks keep no account."""
MOST_CONTEXTS = 4
"""Processes of one execution that may use so much besides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMemoryUse:
    """What the processes of one execution use of one GPU."""

    gpu: GpuUuid
    processes: int
    memory: int
    """Bytes of all of them together."""

    def is_over(self, promised: int) -> bool:
        """Whether it is more than was promised, and what contexts take."""
        return self.memory > promised + min(self.processes, MOST_CONTEXTS) * CONTEXT_MEMORY


class PortionWatch:
    """Since when executions use more than their portion, as far as they do."""

    def __init__(self) -> None:
        self._since: dict[ExecutionId, float] = {}

    def look(self, execution: ExecutionId, uses: Sequence[GpuMemoryUse], promised: int, seconds: float) -> str:
        """What is to be told of an execution that has used more for too long; empty: nothing is, or is yet.

        `promised`: bytes of each of its GPUs; `seconds` are of a clock that nobody sets.
        """
        over = max((use for use in uses if use.is_over(promised)), key=lambda use: use.memory, default=None)
        if over is None:
            self._since.pop(execution, None)
            return ""
        if seconds - self._since.setdefault(execution, seconds) < PORTION_PATIENCE:
            return ""
        return f"uses {_gib(over.memory)} of the memory of {over.gpu}, and its portion is {_gib(promised)}"

    def keep(self, executions: Sequence[ExecutionId]) -> None:
        """Forget all others, which do not run any more."""
        self._since = {each: since for each, since in self._since.items() if each in executions}


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"
