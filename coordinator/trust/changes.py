"""How what is known of accounts, tokens and nodes changes: one change at a time, and none before it is durable."""

import asyncio
from collections.abc import Callable, Sequence

from coordinator.completion import completed
from coordinator.trust.records import TrustChange, TrustStore
from muster.domain.fleet.access import AuditEntry
from muster.domain.ids import NodeId


class TrustChanges:
    """The one queue of changes, and who is told when somebody may do less than before."""

    def __init__(self, store: TrustStore) -> None:
        self._store = store
        self.writing = asyncio.Lock()
        """Held from the look at what is known until memory has what is durable."""
        self.on_less: Callable[[NodeId | None], None] = lambda _: None
        """Called when a node, or with None anybody, may do less than before."""

    async def commit(self, changes: Sequence[TrustChange], entry: AuditEntry) -> None:
        """Make changes durable, all or none, together with their entry of the audit log.

        A caller who goes away meanwhile still learns whether they are: memory must not differ from what is durable.
        """
        await completed(asyncio.to_thread(self._store.commit_trust, changes, (entry,)))
