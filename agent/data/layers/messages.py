"""What the agent and the mover of images say to each other."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from ipaddress import ip_address
from typing import Any

from muster.domain.jobs.image import DOCKER_HUB

_HUB = "registry-1.docker.io"


class LayerAsk(StrEnum):
    """What the mover of images is asked."""

    OPEN = "open"  #: to let the engine pull an image through it
    CLOSE = "close"  #: to give a pull nothing more
    SHARE = "share"  #: to let the agent have what a pull wants come from other nodes
    WANTED = "wanted"  #: what the engine has asked for next
    THERE = "there"  #: how much of a blob is there
    LEAVE = "leave"  #: to have a blob come from the registry, unless it is there
    READ = "read"  #: parts of blobs of the registry into a file


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSource:
    """Where an image comes from."""

    host: str
    path: str
    username: str = ""
    password: str = field(default="", repr=False)
    """Both empty: nothing is shown."""

    @property
    def server(self) -> str:
        """The registry as the beginning of URLs. On this machine no TLS is expected, as Docker does not expect it."""
        if self.host == DOCKER_HUB:
            return f"https://{_HUB}"
        return f"{'http' if _is_here(self.host) else 'https'}://{self.host}"

    @property
    def on_loopback(self) -> str:
        """What the registry on loopback calls it."""
        return f"{self.host.replace(':', '__')}/{self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PullWanted:
    """An image that is to be pulled through this node."""

    source: ImageSource
    reference: str
    """The digest of the image, or a tag."""
    architecture: str
    project: str | None
    """The project whose login is shown, or empty where none is; None: nobody knows, and the registry is asked."""


def wanted_said(wanted: PullWanted) -> dict[str, Any]:
    """An image that is to be pulled as a question has it."""
    return asdict(wanted)


def wanted_heard(said: Mapping[str, Any]) -> PullWanted:
    """The image of a question."""
    return PullWanted(
        source=ImageSource(**said["source"]),
        reference=said["reference"],
        architecture=said["architecture"],
        project=said["project"],
    )


def _is_here(host: str) -> bool:
    name = host.rpartition(":")[0] or host
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
