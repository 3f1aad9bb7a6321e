"""Pulls of images onto nodes before jobs need them: the order to an agent, what it tells of it, and what people see."""

from dataclasses import dataclass, field
from enum import StrEnum


class PullStep(StrEnum):
    """How far the pull of an image on one node is."""

    WAITING = "waiting"  #: other nodes, or other pulls of the node, come first
    PULLING = "pulling"  #: the engine of the node fetches it
    PULLED = "pulled"  #: the node has it
    FAILED = "failed"  #: the node could not get it, or could not be told


ENDED_STEPS = frozenset({PullStep.PULLED, PullStep.FAILED})
"""Steps after which nothing more comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePull:
    """The order to pull an image onto a node; never logged, as it may have a password."""

    number: str
    """Names the order, for what is told of it."""
    image: str
    username: str = ""
    """The name by which the registry knows who pulls; empty: it is asked for by nobody in particular."""
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class PulledHere:
    """An image that a node has got."""

    id: str
    """What the engine of the node calls it."""
    digest: str = ""
    """The digest of its manifest in its registry; empty: the engine does not know it."""
    bytes: int = 0
    """How much it is by the engine's word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullNews:
    """What an agent tells of the order to pull an image."""

    number: str
    step: PullStep
    doing: str = ""
    """How much of it is there, while it is pulled: `37 %`."""
    why: str = ""
    """Why the node could not get it."""
    pulled: PulledHere | None = None
    """The image, once the node has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePull:
    """The pull of an image on one node, as people see it."""

    node: str
    step: PullStep = PullStep.WAITING
    doing: str = ""
    """How much of it is there, while it is pulled: `37 %`."""
    why: str = ""
    """Why the node could not get it."""
    id: str = ""
    """What the engine of the node calls the image."""
    digest: str = ""
    """The digest of its manifest in its registry."""
    bytes: int = 0
    """How much it is by the engine's word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullView:
    """The pull of an image on several nodes, as people see it."""

    id: str
    """Names the pull, until it is forgotten."""
    image: str
    revision: int = 0
    """Counts up whenever something has changed."""
    nodes: tuple[NodePull, ...] = ()
    """What is known of each node, by name."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of it."""
        return all(each.step in ENDED_STEPS for each in self.nodes)
