"""When attempts were last used, as agents have told since the coordinator started; nothing of it is stored.

Agents tell the time of a use by their own clocks. What counts is when a use that was not known was heard of, so clocks
need not agree.
"""

from datetime import datetime

from coordinator.core.records import Attempt
from muster.domain.ids import AttemptId, ExecutionId


class Uses:
    """An index over attempts that were released and have not ended."""

    def __init__(self, since: datetime) -> None:
        """`since`: when the coordinator started, and began to hear."""
        self._since = since
        """Before that anything may have been used that nobody heard of."""
        self._last: dict[AttemptId, datetime] = {}
        """When each was heard to be used, or was released; not there: neither since the coordinator started."""
        self._told: dict[AttemptId, dict[ExecutionId, datetime]] = {}
        """What agents said last, by their own clocks."""
        self._notices: dict[AttemptId, tuple[datetime, int]] = {}
        """The ends of which people were told last, and how often they were told of one."""

    def last(self, attempt: AttemptId) -> datetime:
        """When an attempt was last heard to be used or was released, or later, while nobody heard anything."""
        return max(self._since, self._last.get(attempt, self._since))

    def notice(self, attempt: AttemptId) -> datetime | None:
        """The end of which people were told last; None: they were told of none."""
        end, _ = self._notices.get(attempt, (None, 0))
        return end

    def hear(self, attempt: AttemptId, execution: ExecutionId, used_at: datetime, now: datetime) -> None:
        """Take in when an agent says that an execution was last used; what it said before is no news."""
        told = self._told.setdefault(attempt, {})
        if told.get(execution) != used_at:
            told[execution] = used_at
            self._last[attempt] = now

    def woke_up(self, now: datetime) -> None:
        """Count all as used: the coordinator slept, and what its agents said meanwhile is still to be heard."""
        self._since = now

    def assume(self, attempt: AttemptId, now: datetime) -> None:
        """Count an attempt as used, as a part of it is not heard."""
        self._last[attempt] = now

    def give_notice(self, attempt: AttemptId, ends_at: datetime) -> int:
        """Remember that people are told of this end; how often they were told of one, this time included."""
        _, before = self._notices.get(attempt, (None, 0))
        self._notices[attempt] = (ends_at, before + 1)
        return before + 1

    def attempt_changed(self, before: Attempt | None, after: Attempt | None) -> None:
        """Hear of an attempt that is new, other than before, or forgotten; one that was loaded counts as used now."""
        if after is None or after.ended_at is not None:
            if before is not None:
                self._forget(before.attempt_id)
        elif before is not None and before.released_at is None and after.released_at is not None:
            self._last[after.attempt_id] = after.released_at

    def _forget(self, attempt: AttemptId) -> None:
        self._last.pop(attempt, None)
        self._told.pop(attempt, None)
        self._notices.pop(attempt, None)
