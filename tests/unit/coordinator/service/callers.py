"""Callers for tests of operations, and an audit log that is read back."""

from collections.abc import Container, Mapping

from coordinator.service.operations import Operations
from coordinator.trust.audit.log import AuditLog
from coordinator.trust.caller import Caller, CallerKind
from coordinator.trust.registry import Registry
from coordinator.trust.secrets.secrets import Secrets
from muster.domain.fleet.access import EVERYWHERE, Access, AuditEntry, Project
from muster.trust.sealing import new_sealing_key
from tests.unit.coordinator.trust.memory_trust import PROJECTS, MemoryTrust

HERE = "ipv4:10.0.0.1:7"


def person(name: str = "ada", **grants: Access) -> Caller:
    """Somebody with access to these projects."""
    return Caller(kind=CallerKind.USER, name=name, grants=grants, origin=HERE)


def of_all(access: Access, name: str = "root") -> Caller:
    """Somebody with this access to everything."""
    return Caller(kind=CallerKind.USER, name=name, grants={EVERYWHERE: access}, origin=HERE)


def secrets_in_memory(projects: Container[str]) -> Secrets:
    """Secrets of these projects, of which there are none yet."""
    return Secrets(MemoryTrust(), [new_sealing_key()], projects)


class Trusted:
    """Callers that are known, with the projects `default`, `red` and `blue` or others, and what was written down."""

    def __init__(self, store: MemoryTrust | None = None, projects: Mapping[str, Project] = PROJECTS) -> None:
        self.store = store or MemoryTrust()
        self.registry = Registry(self.store, projects)
        self.audit = AuditLog(self.registry)
        self.operations = Operations(self.registry.projects, self.audit)

    async def entries(self) -> list[AuditEntry]:
        """All entries of the audit log."""
        await self.audit.flush()
        return self.store.entries

    async def told(self) -> list[tuple[str, str, str, str]]:
        """The audit log, entry by entry: who did what, to what, and how it ended."""
        return [(each.who, each.what, each.target, each.result) for each in await self.entries()]
