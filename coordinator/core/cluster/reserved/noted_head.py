"""The attempt whose record tells what is kept for the head of the queue, so that it outlives the coordinator."""

from coordinator.core.placement.reservation import Reservation
from coordinator.core.records import Attempt
from muster.domain.ids import AttemptId


class NotedHead:
    """An index over attempts; at most one of them tells of such seats, but for a moment within a cycle."""

    def __init__(self) -> None:
        self.attempt: AttemptId | None = None
        """The attempt that tells of them; None: none does."""
        self._reservation: Reservation | None = None
        """What its record was made from."""

    def tells(self, attempt: AttemptId | None, reservation: Reservation | None) -> bool:
        """Whether the records say already what is kept, and for which attempt."""
        return self.attempt == attempt and self._reservation is reservation

    def note(self, reservation: Reservation | None) -> None:
        """Hear that the record of its attempt tells of these seats, or that no record tells of any."""
        self._reservation = reservation

    def changed(self, before: Attempt | None, after: Attempt | None) -> None:
        """Hear of an attempt that is new, other than before, or forgotten."""
        if after is not None and after.reserved:
            self.attempt = after.attempt_id
        elif before is not None and before.attempt_id == self.attempt:
            self.attempt = None
