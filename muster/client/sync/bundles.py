"""The synchronous form of `muster.client.services.bundles`, made from it by `make sync`; change that one."""

from collections.abc import Callable
from pathlib import Path

from muster.client.blocking.loop_thread import LoopThread
from muster.client.services.bundles import BundlesClient
from muster.domain.fleet.bundle import KeptBundle


class SyncBundlesClient:
    """Bundles, reached as `client.bundles`."""

    def __init__(self, own: BundlesClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def list(self) -> tuple[KeptBundle, ...]:
        """Bundles that the coordinator keeps, the newest version first.

        >>> names = [bundle.name for bundle in client.bundles.list()]
        """
        return self._loop.run(self._own.list())

    def signers(self) -> frozenset[str]:
        """Fingerprints of the keys whose bundles the coordinator takes; none: it takes any bundle.

        >>> signers = client.bundles.signers()
        """
        return self._loop.run(self._own.signers())

    def upload(self, file: Path, name: str = "", tell: Callable[[int], None] = lambda _: None) -> KeptBundle:
        """Have the coordinator keep a bundle, under the name of the file or another one.

        `tell` is called with the number of bytes that have been sent.

        >>> client.bundles.upload(Path("muster.tar"))
        """
        return self._loop.run(self._own.upload(file, name, tell))

    def download(
        self, into: Path, name: str = "", tell: Callable[[int, int], None] = lambda _sent, _size: None
    ) -> tuple[KeptBundle, Path]:
        """A bundle of the coordinator, the newest one without a name, as a file in a directory, and its path.

        It is there whole and with the right hash, or not at all. `tell` is called with the number of bytes that have
        arrived, and of all.

        >>> bundle, path = client.bundles.download(Path("/tmp"))
        """
        return self._loop.run(self._own.download(into, name, tell))

    def remove(self, name: str) -> None:
        """Have the coordinator keep a bundle no longer.

        >>> client.bundles.remove("muster-0.1.0-cp311-x86_64.tar")
        """
        self._loop.run(self._own.remove(name))
