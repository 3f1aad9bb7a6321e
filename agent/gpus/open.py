"""The GPUs of a node: what the rest of the agent needs to know of where they come from.

- `gpu_source.py` the contract, and the values that sources give
- `gpu_nvml.py` real GPUs, through a child process (`nvml.py`)
- `gpu_simulated.py` GPUs that are not there
- `gpu_health.py` which are fit for use
"""

from agent.gpus.health import judge
from agent.gpus.nvml.source import NvmlSource
from agent.gpus.source import GpuFault, GpuReading, GpuSource
from muster.domain.errors import UnknownNameError
from muster.domain.ids import NodeId

__all__ = ["GpuFault", "GpuReading", "GpuSource", "NvmlSource", "judge", "open_source"]


def open_source(provider: str, node: NodeId) -> GpuSource:
    """Give the source that the operator chose: `nvml`, or `fake:8xH100`; `fake:1xH100/3g.40gb` has a MIG device."""
    if provider == "nvml":
        return NvmlSource()
    kind, _, spec = provider.partition(":")
    if kind == "fake":
        from agent.gpus.simulated import SimulatedSource  # noqa: PLC0415 - for trying things out

        return SimulatedSource(spec, node)
    raise UnknownNameError(f"no GPU provider is called {provider!r}; use nvml, or fake:8xH100 to simulate some")
