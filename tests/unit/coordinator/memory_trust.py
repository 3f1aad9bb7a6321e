"""A trust store without a disk."""

from collections.abc import Sequence
from datetime import UTC, datetime

from coordinator.trust.records import AuditWish, TrustChange, TrustSnapshot
from muster.domain.access import AuditEntry, EnrolledNode, IssuedJoinToken

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


class MemoryTrust:
    """Keeps the audit log, and what was changed."""

    def __init__(self) -> None:
        self.entries: list[AuditEntry] = []
        self.changes: list[TrustChange] = []

    def load_trust(self) -> TrustSnapshot:
        return TrustSnapshot()

    def commit_trust(self, changes: Sequence[TrustChange], entries: Sequence[AuditEntry] = ()) -> None:
        self.changes += changes
        self.entries += entries

    def enrol(self, token: str, node: EnrolledNode, entry: AuditEntry) -> IssuedJoinToken | None:
        raise NotImplementedError

    def audit(self, wish: AuditWish) -> Sequence[AuditEntry]:
        del wish
        return self.entries
