"""The synchronous form of `muster.client.services.authority`, made from it by `make sync`; change that one."""

from muster.client.blocking.loop_thread import LoopThread
from muster.client.services.authority import AuthorityClient
from muster.domain.fleet.access import AuthorityStatus


class SyncAuthorityClient:
    """The fleet's authority, reached as `client.authority`."""

    def __init__(self, own: AuthorityClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def show(self) -> AuthorityStatus:
        """Which authorities of the fleet count, and which nodes know of them.

        >>> status = client.authority.show()
        """
        return self._loop.run(self._own.show())

    def rotate(self) -> AuthorityStatus:
        """Begin to change the fleet's authority; nodes learn the next one and get certificates from it.

        >>> client.authority.rotate()
        """
        return self._loop.run(self._own.rotate())

    def finish(self, *, force: bool = False) -> AuthorityStatus:
        """Have the former authority count no more; ConflictError while nodes that are there need it, unless `force`.

        >>> client.authority.finish()
        """
        return self._loop.run(self._own.finish(force=force))
