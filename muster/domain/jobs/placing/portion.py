"""Portions of GPUs: how they are said, and how much each is of a GPU."""

from dataclasses import dataclass
from typing import Final, NamedTuple

WHOLE_GPU: Final = 1000
"""Thousandths of a whole GPU."""
LEAST_PORTION: Final = 10
"""The smallest portion that can be asked for, in thousandths of a GPU."""
LEAST_GPU_MEMORY: Final = 1 << 28
"""The least memory of a GPU that can be asked for, in bytes: a CUDA context alone takes more than half of it."""
PORTION_FORM: Final = "a part of a GPU from 0.01 to 1 such as 0.5, in thousandths at the finest"
TOO_LARGE: Final = WHOLE_GPU + 1
"""The thousandths of a portion that a GPU has not."""


@dataclass(frozen=True, slots=True)
class GpuShare:
    """What an execution has of one GPU."""

    thousandths: int
    memory: int
    """Bytes."""


class Portion(NamedTuple):
    """What an execution asks of each of its GPUs: a part, or so much memory."""

    thousandths: int
    """The part; of one that is said as memory what it counts in quotas."""
    memory: int = 0
    """Bytes; 0: the part is said, and has as large a part of the memory."""

    def of(self, gpu_memory: int) -> GpuShare:
        """What it is of a GPU with so much memory; more than a whole GPU where it has not so much."""
        if not self.memory:
            return GpuShare(self.thousandths, gpu_memory * self.thousandths // WHOLE_GPU)
        if self.memory > gpu_memory:
            return GpuShare(TOO_LARGE, self.memory)
        return GpuShare(-(-self.memory * WHOLE_GPU // gpu_memory), self.memory)

    def fitting(self, gpu_memory: int) -> int:
        """How many of them a GPU with so much memory holds."""
        share = self.of(gpu_memory)
        return min(WHOLE_GPU // share.thousandths, gpu_memory // share.memory if share.memory else WHOLE_GPU)
