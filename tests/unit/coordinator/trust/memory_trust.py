"""Trust stores without a disk."""

import threading
from collections.abc import Sequence
from datetime import UTC, datetime

from coordinator.store.store import StoreError
from coordinator.trust.records import AuditWish, RemovedPreset, StoredSecret, TrustChange, TrustSnapshot
from muster.domain.fleet.access import AuditAnchor, AuditEntry, EnrolledNode, IssuedJoinToken, Project
from muster.domain.fleet.policies.preset import Preset, PresetId

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
PROJECTS = {name: Project(name=name, created_at=NOW) for name in ("default", "red", "blue")}


class MemoryTrust:
    """Keeps the audit log, and what was changed; nothing while something is wrong with it."""

    def __init__(self) -> None:
        self.entries: list[AuditEntry] = []
        self.changes: list[TrustChange] = []
        self.wrong = ""
        self.commits = 0

    def load_trust(self) -> TrustSnapshot:
        return TrustSnapshot()

    def commit_trust(self, changes: Sequence[TrustChange], entries: Sequence[AuditEntry] = ()) -> None:
        if self.wrong:
            raise StoreError(self.wrong)
        self.commits += 1
        self.changes += changes
        self.entries += entries

    def enrol(self, token: str, node: EnrolledNode, entry: AuditEntry) -> IssuedJoinToken | None:
        raise NotImplementedError

    def load_secrets(self) -> list[StoredSecret]:
        return []

    def load_secret(self, project: str, name: str) -> StoredSecret | None:
        stored = [each for each in self.changes if isinstance(each, StoredSecret)]
        return next(
            (each for each in reversed(stored) if (each.secret.project, each.secret.name) == (project, name)), None
        )

    def load_presets(self) -> Sequence[Preset | RemovedPreset]:
        return [each for each in self.changes if isinstance(each, Preset | RemovedPreset)]

    def preset_versions(self, which: PresetId) -> Sequence[Preset]:
        kept = [each for each in self.changes if isinstance(each, Preset) and each.id == which]
        return kept[::-1]

    def preset_version(self, which: PresetId, version: int) -> Preset | None:
        return next((each for each in self.preset_versions(which) if each.version == version), None)

    def audit(self, wish: AuditWish) -> Sequence[AuditEntry]:
        del wish
        return self.entries

    def audit_anchor(self) -> AuditAnchor:
        return AuditAnchor()

    def prune_audit(self, before: datetime, most: int | None, now: datetime) -> int:
        raise NotImplementedError


class TrustThatWaits(MemoryTrust):
    """A store whose commits take until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.entered = threading.Event()
        self.let_go = threading.Event()

    def commit_trust(self, changes: Sequence[TrustChange], entries: Sequence[AuditEntry] = ()) -> None:
        self.entered.set()
        self.let_go.wait(60)
        super().commit_trust(changes, entries)
