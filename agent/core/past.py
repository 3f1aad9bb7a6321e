"""What an agent remembers of its part in attempts whose executions it has cleared away."""

from collections.abc import Container

from agent.core.terms import Terms
from muster.domain.ids import AttemptId

MEMORY = 1000
"""Most attempts that are remembered; of those that are forgotten peers hear that they are over."""


class Past:
    """Parts that ended well, for peers that go on without the coordinator."""

    def __init__(self, memory: int = MEMORY) -> None:
        self._memory = memory
        self._well: dict[AttemptId, Terms] = {}
        self._spoilt: set[AttemptId] = set()
        """Attempts of which another execution is still here, but this part is over."""

    def add(self, terms: Terms, *, well: bool, others: bool) -> None:
        """An execution was cleared away; `others` tells whether there are more of its attempt on this node."""
        if not well:
            self._well.pop(terms.attempt_id, None)
            self._spoilt.add(terms.attempt_id)
        elif terms.attempt_id not in self._spoilt:
            self._well[terms.attempt_id] = terms
        if not others:
            self._spoilt.discard(terms.attempt_id)

    def trim(self, here: Container[AttemptId]) -> None:
        """Forget the oldest of those that are not here any more."""
        surplus = len(self._well) - self._memory
        if surplus > 0:
            for attempt_id in [attempt_id for attempt_id in self._well if attempt_id not in here][:surplus]:
                del self._well[attempt_id]

    def well(self, attempt_id: AttemptId) -> Terms | None:
        """The terms of an attempt of which something was cleared away, and all of that had ended well."""
        return self._well.get(attempt_id)

    def spoilt(self, attempt_id: AttemptId) -> bool:
        """Whether something of an attempt that is still here was cleared away that had not ended well."""
        return attempt_id in self._spoilt
