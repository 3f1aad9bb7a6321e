"""Images that agents have pulled onto their nodes: what agents tell of them, and the order to take some away."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

MOST_IMAGES_TOLD = 512
"""Images of one node that are told; the longest unused of more are left out."""
MOST_NAMES_TOLD = 16
"""Names of one image that are told."""
MOST_IMAGES_NAMED = 100
"""Images that one order to clear names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldImage:
    """What an agent tells of an image that it has pulled."""

    id: str
    """What the engine of the node calls it."""
    names: tuple[str, ...]
    """The names that the agent has given it."""
    bytes: int
    """How much it is by the engine's word; 0: that is not known."""
    used_at: datetime
    """When an execution last began with it, or was seen to use it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageNews:
    """What has changed of the images that an agent has pulled."""

    images: tuple[ToldImage, ...] = ()
    """Images that are new or other than before."""
    gone: tuple[str, ...] = ()
    """Ids of images that are gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageClearance:
    """The order to take images away from a node."""

    number: str
    """Names the order, for the answer to it."""
    images: tuple[str, ...] = ()
    """Names or ids; none: all that nobody uses."""


class ClearOutcome(StrEnum):
    """What has become of one image that was to go."""

    REMOVED = "removed"  #: it is gone, or was gone before
    SHARED = "shared"  #: the names of the agent are gone; others have given it more, so it stays under these
    IN_USE = "in_use"  #: a container uses it, or an execution is being prepared that may
    UNKNOWN = "unknown"  #: the agent has pulled none of this name
    FAILED = "failed"  #: the engine did not remove it
    LATER = "later"  #: the time for one order was over before


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageFate:
    """What has become of one image that was to go."""

    image: str
    """Name of the image, or what was asked for where there is no such image."""
    outcome: ClearOutcome
    bytes: int = 0
    """How much it is by the engine's word; layers that other images have as well stay on the disk."""
    why: str = ""
    """What the engine said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearedImages:
    """An agent's answer to the order to take images away."""

    number: str
    fates: tuple[ImageFate, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageView:
    """An image that the agent of a node has pulled, as people see it."""

    node: str
    id: str
    """What the engine of the node calls it."""
    names: tuple[str, ...]
    """The names that the agent has given it."""
    bytes: int
    """How much it is by the engine's word; 0: that is not known."""
    used_at: datetime
    """When an execution last began with it, or was seen to use it."""
    jobs: tuple[str, ...] = ()
    """Ids of the jobs that use it now."""
    connected: bool = True
    """Whether the node is there; otherwise this is what it told last."""
