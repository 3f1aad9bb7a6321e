"""Where a node keeps layers of images, and who gives it some; loads nothing that agents without Docker lack."""

from dataclasses import dataclass
from pathlib import Path

from agent.swarm.shelf import SwarmAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSite:
    """The layers of one node."""

    directory: Path
    swarms: SwarmAccess | None
    """How the node gets into swarms; None: it may not."""
