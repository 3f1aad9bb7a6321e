"""The synchronous form of `muster.client.services.windows`, made from it by `make sync`; change that one."""

from muster.client.services.windows import WindowsClient
from muster.client.sync.loop_thread import LoopThread
from muster.domain.fleet.window import Window


class SyncWindowsClient:
    """Windows, reached as `client.windows`."""

    def __init__(self, own: WindowsClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def list(self) -> tuple[Window, ...]:
        """All windows that have not ended, by name.

        >>> for window in client.windows.list():
        ...     print(window.name, window.begins, window.ends)
        """
        return self._loop.run(self._own.list())

    def put(self, window: Window) -> Window:
        """Set a window, in place of the one of its name.

        >>> client.windows.put(Window(name="disks", nodes=("gpu-1",), begins=evening, ends=morning))
        """
        return self._loop.run(self._own.put(window))

    def remove(self, name: str) -> Window:
        """Remove a window, so that its nodes take jobs again; the window as it was.

        >>> client.windows.remove("disks")
        """
        return self._loop.run(self._own.remove(name))
