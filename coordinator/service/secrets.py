"""Operations on secrets, which are put here and never read back."""

from collections.abc import Mapping, Sequence

from coordinator.clock import wall_time
from coordinator.service.operations import Operations
from coordinator.trust.caller import Caller
from coordinator.trust.secrets.secrets import Secrets
from muster.domain.fleet.secret import Secret, SecretKind

_HAVE_SERVERS = frozenset({SecretKind.REGISTRY, SecretKind.HTTP, SecretKind.GIT})
"""Kinds whose values name the server that they are for."""


class SecretOperations:
    """What callers may do with secrets; an empty project is the default one."""

    def __init__(self, operations: Operations, secrets: Secrets) -> None:
        self._operations = operations
        self._secrets = secrets

    async def set(
        self,
        caller: Caller,
        project: str,
        name: str,
        values: Mapping[str, bytes],
        *,
        kind: SecretKind = SecretKind.GENERIC,
        replace: bool = False,
    ) -> Secret:
        """The secret with these values from now on; one that is there is replaced only if that is asked for."""
        project = caller.meant_project(project)
        async with self._operations.begin(caller, "secrets.set", f"{project}/{name}") as operation:
            operation.require_in(project)
            now, keys = wall_time(), tuple(sorted(values))
            secret = Secret(
                project=project,
                name=name,
                kind=kind,
                keys=keys,
                created_at=now,
                updated_at=now,
                updated_by=caller.name,
                server=values.get("server", b"").decode(errors="replace").strip() if kind in _HAVE_SERVERS else "",
            )
            done = operation.done(f"{kind} with {', '.join(keys)}")
            return await self._secrets.put(secret, values, done, again=replace)

    async def list(self, caller: Caller, project: str) -> Sequence[Secret]:
        """What is known of a project's secrets, by name."""
        project = caller.meant_project(project)
        async with self._operations.begin(caller, "secrets.list", project) as operation:
            operation.require_in(project)
            return [secret for _, secret in sorted(self._secrets.of_project(project).items())]

    async def remove(self, caller: Caller, project: str, name: str) -> None:
        """Forget a secret; raises UnknownNameError."""
        project = caller.meant_project(project)
        async with self._operations.begin(caller, "secrets.remove", f"{project}/{name}") as operation:
            operation.require_access(project)
            await self._secrets.remove(project, name, operation.done())
