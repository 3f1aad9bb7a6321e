"""What an agent remembers of its part in attempts whose executions it has cleared away."""

from collections.abc import Container

from agent.core.terms import AttemptKey, Terms

MEMORY = 1000
"""Most attempts that are remembered; of those that are forgotten peers hear that they are over."""


class Past:
    """Parts that ended well, for peers that go on without the coordinator."""

    def __init__(self, memory: int = MEMORY) -> None:
        self._memory = memory
        self._well: dict[AttemptKey, Terms] = {}
        self._spoilt: set[AttemptKey] = set()
        """Attempts of which another execution is still here, but this part is over."""

    def add(self, terms: Terms, *, well: bool, others: bool) -> None:
        """An execution was cleared away; `others` tells whether there are more of its attempt on this node."""
        if not well:
            self._well.pop(terms.key, None)
            self._spoilt.add(terms.key)
        elif terms.key not in self._spoilt:
            self._well[terms.key] = terms
        if not others:
            self._spoilt.discard(terms.key)

    def trim(self, here: Container[AttemptKey]) -> None:
        """Forget the oldest of those that are not here any more."""
        surplus = len(self._well) - self._memory
        if surplus > 0:
            for key in [key for key in self._well if key not in here][:surplus]:
                del self._well[key]

    def well(self, key: AttemptKey) -> Terms | None:
        """The terms of an attempt of which something was cleared away, and all of that had ended well."""
        return self._well.get(key)

    def spoilt(self, key: AttemptKey) -> bool:
        """Whether something of an attempt that is still here was cleared away that had not ended well."""
        return key in self._spoilt
