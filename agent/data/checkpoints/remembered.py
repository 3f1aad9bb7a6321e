"""Trees of parts that an agent has in memory, so that it need not ask the depot for what it has stored itself."""

from muster.domain.data.tree import ContentTree

TREES_REMEMBERED = 128
"""Newest trees that an agent remembers; of others it keeps no part for the next attempt."""


class RememberedTrees:
    """The newest trees by their digests. A job that saves for weeks stores ever other ones."""

    def __init__(self) -> None:
        self._trees: dict[str, ContentTree] = {}

    def add(self, tree: ContentTree) -> None:
        """Remember a tree, and forget the one that was added longest ago where they are too many."""
        self._trees.pop(tree.digest, None)
        self._trees[tree.digest] = tree
        if len(self._trees) > TREES_REMEMBERED:
            del self._trees[next(iter(self._trees))]

    def get(self, digest: str) -> ContentTree | None:
        """The tree with that digest; None: it is not remembered."""
        return self._trees.get(digest)

    def drop(self, digest: str) -> None:
        """Forget a tree, if it is remembered."""
        self._trees.pop(digest, None)
