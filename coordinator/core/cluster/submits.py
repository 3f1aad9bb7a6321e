"""Which submit made which job: idempotency keys, and the number of the next job."""

from coordinator.core.records import Job
from muster.domain.ids import JobId


class Submits:
    """An index over jobs."""

    def __init__(self) -> None:
        self._keys: dict[str, JobId] = {}
        self._next_sequence = 1

    @property
    def next_sequence(self) -> int:
        """A sequence number higher than that of every job."""
        return self._next_sequence

    def of_key(self, idempotency_key: str) -> JobId | None:
        """The job that was submitted with this key; None: none was."""
        return self._keys.get(idempotency_key)

    def changed(self, before: Job | None, after: Job | None) -> None:
        """Hear of a job that is new, other than before, or forgotten."""
        if after is None:
            assert before is not None
            self._keys.pop(before.idempotency_key, None)
        elif before is None:
            self._next_sequence = max(self._next_sequence, after.sequence + 1)
            if after.idempotency_key:
                self._keys[after.idempotency_key] = after.id
