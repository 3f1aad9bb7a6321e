"""All that one stream brings of what its node keeps."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from coordinator.rpc.agents.downlink import Downlink
from coordinator.rpc.agents.kept.images import ImageLine
from coordinator.rpc.agents.kept.pulls import PullLine
from coordinator.rpc.agents.kept.volumes import VolumeLine
from coordinator.service.data.kept_images import KeptImageBook
from coordinator.service.data.kept_volumes import KeptVolumeBook
from coordinator.service.data.pull_book import PullBook
from muster.domain.data.kept.image import ToldImage
from muster.domain.data.volume import KeptVolume
from muster.domain.ids import NodeId
from muster.rpc.v1 import agents_pb2 as pb
from muster.wire import checks
from muster.wire.data.pulled_images import told_image_from_wire
from muster.wire.data.volumes import kept_volume_from_wire


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBooks:
    """What the coordinator knows of what nodes keep."""

    volumes: KeptVolumeBook = field(default_factory=KeptVolumeBook)
    images: KeptImageBook = field(default_factory=KeptImageBook)
    pulls: PullBook = field(default_factory=PullBook)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOnNode:
    """What an agent says in Hello that its node keeps."""

    volumes: Sequence[KeptVolume]
    images: Sequence[ToldImage]


def kept_in(hello: pb.Hello) -> KeptOnNode:
    """What an agent says in Hello; raises WireError."""
    checks.few(hello.kept_volumes, "Hello.kept_volumes")
    checks.few(hello.pulled_images, "Hello.pulled_images")
    return KeptOnNode(
        volumes=tuple(map(kept_volume_from_wire, hello.kept_volumes)),
        images=tuple(map(told_image_from_wire, hello.pulled_images)),
    )


class NodeKeepLines:
    """What one stream brings of volumes and images."""

    def __init__(self, books: KeptBooks, node: NodeId, down: Downlink) -> None:
        self._volumes = VolumeLine(books.volumes, node, down)
        self._images = ImageLine(books.images, node, down)
        self._pulls = PullLine(books.pulls, node, down)

    @contextmanager
    def open(self, kept: KeptOnNode) -> Iterator[None]:
        """While the stream is open, orders go down on it; `kept`: all that the node keeps as it begins."""
        with self._volumes.open(kept.volumes), self._images.open(kept.images), self._pulls.open(()):
            yield

    def take(self, message: pb.AgentMessage) -> bool:
        """Take in a message, if it is about what nodes keep; whether it is. Raises WireError."""
        return self._volumes.take(message) or self._images.take(message) or self._pulls.take(message)
