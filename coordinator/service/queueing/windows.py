"""Operations on windows: which there are, and when which nodes are out of service."""

from collections.abc import Sequence

from coordinator.core.answers import WindowGone, WindowKept
from coordinator.core.events import WindowRemoved, WindowSet
from coordinator.engine.engine import Engine, Freshness
from coordinator.service.causes import answer_to
from coordinator.service.operations import Operations
from coordinator.trust.caller import Caller
from muster.domain.errors import InvalidJobError
from muster.domain.fleet.window import LONGEST_WINDOW_NOTICE, MOST_WINDOW_NODES, WINDOW_REASON, Window
from muster.domain.quantity import format_duration


class WindowOperations:
    """What callers may do with windows."""

    def __init__(self, operations: Operations, engine: Engine) -> None:
        self._operations = operations
        self._engine = engine

    async def list(self, caller: Caller) -> Sequence[Window]:
        """All windows that have not ended, by name; they concern whoever has jobs."""
        async with self._operations.begin(caller, "windows.list"):
            return await self._engine.query(
                lambda cluster, _: sorted(cluster.load.windows, key=lambda window: window.name),
                after=Freshness.COMMITTED,
            )

    async def put(self, caller: Caller, window: Window) -> Window:
        """Set a window, in place of the one of its name; the window."""
        async with self._operations.begin(caller, "windows.put", window.name) as operation:
            answer = await answer_to(self._engine, WindowSet(window=_checked(window), cause=operation.cause))
            assert isinstance(answer, WindowKept)
            return answer.window

    async def remove(self, caller: Caller, name: str) -> Window:
        """Remove a window; the window as it was."""
        async with self._operations.begin(caller, "windows.remove", name) as operation:
            answer = await answer_to(self._engine, WindowRemoved(name=name, cause=operation.cause))
            assert isinstance(answer, WindowGone)
            return answer.window


def _checked(window: Window) -> Window:
    """The window; raises InvalidJobError for one that cannot be meant."""
    if window.ends <= window.begins:
        raise InvalidJobError(f"window {window.name} ends before it begins")
    if not window.nodes and not window.labels:
        raise InvalidJobError(f"window {window.name} has no nodes; name some, or labels that they carry")
    if len(window.nodes) > MOST_WINDOW_NODES:
        raise InvalidJobError(f"window {window.name} names {len(window.nodes)} nodes; {MOST_WINDOW_NODES} are the most")
    if len(window.reason) > WINDOW_REASON:
        raise InvalidJobError(f"the reason has {len(window.reason)} characters; {WINDOW_REASON} are kept")
    if window.notice > LONGEST_WINDOW_NOTICE:
        raise InvalidJobError(f"the notice is longer than {format_duration(LONGEST_WINDOW_NOTICE)}")
    return window
