"""How close to each other the nodes of a gang are to be, by what their labels say."""

from dataclasses import dataclass

NO_LEVEL = "none"
"""Written instead of a level: nodes need not be close."""
DEFAULT_LEVELS = ("zone", "block", "rack", "nvlink")
"""Labels that say where a node is, the coarsest first; those that no node of a pool carries are left out there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The levels at which a gang is to stay together."""

    required: str | None = None
    """All executions go to nodes with the same value of this label, and of the coarser ones; None: anywhere."""
    preferred: str | None = None
    """The label of which executions see as few values as can be, or `none`.

    None: the finest one, where the job is packed and needs GPUs.
    """


ANYWHERE = Topology()
