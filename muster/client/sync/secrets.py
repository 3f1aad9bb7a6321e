"""The synchronous form of `muster.client.services.secrets`, made from it by `make sync`; change that one."""

from collections.abc import Mapping

from muster.client.blocking.loop_thread import LoopThread
from muster.client.services.secrets import SecretsClient
from muster.domain.fleet.secret import Secret, SecretKind


class SyncSecretsClient:
    """Secrets, reached as `client.secrets`."""

    def __init__(self, own: SecretsClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def set(
        self,
        name: str,
        values: Mapping[str, bytes],
        *,
        kind: SecretKind = SecretKind.GENERIC,
        project: str = "",
        replace: bool = False,
    ) -> Secret:
        """Store a secret with these values and no others; ConflictError if one is there that must not be replaced.

        >>> client.secrets.set("wandb", {"key": b"0123456789"}, project="vision")
        """
        return self._loop.run(self._own.set(name, values, kind=kind, project=project, replace=replace))

    def list(self, project: str = "") -> tuple[Secret, ...]:
        """What is known of a project's secrets, by name; never a value.

        >>> names = [secret.name for secret in client.secrets.list("vision")]
        """
        return self._loop.run(self._own.list(project))

    def remove(self, name: str, project: str = "") -> None:
        """Forget a secret; executions that have it keep it until they end.

        >>> client.secrets.remove("wandb", "vision")
        """
        self._loop.run(self._own.remove(name, project))
