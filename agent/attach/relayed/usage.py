"""When executions were last used by who is attached to them."""

from datetime import datetime

from muster.domain.ids import ExecutionId


class Usage:
    """Remembers, for each execution, when bytes last went to or from who is attached to it."""

    def __init__(self) -> None:
        self._last: dict[ExecutionId, datetime] = {}

    def note(self, execution: ExecutionId, at: datetime) -> None:
        """Bytes went to or from who is attached to an execution; cheap, as it is said of every frame."""
        self._last[execution] = at

    def last(self, execution: ExecutionId) -> datetime | None:
        """When bytes last did; None: never since the agent started."""
        return self._last.get(execution)

    def forget(self, execution: ExecutionId) -> None:
        """Nothing of an execution is left."""
        self._last.pop(execution, None)
