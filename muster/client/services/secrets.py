"""The SDK for the secrets of projects: they are set and listed; nobody reads a value back."""

from collections.abc import Mapping
from typing import Any

from muster.client.calls import Calls
from muster.domain.fleet.secret import Secret, SecretKind
from muster.rpc.v1 import trust_pb2 as pb
from muster.rpc.v1.trust_pb2_grpc import SecretServiceStub
from muster.wire.secrets import secret_from_wire


class SecretsClient:
    """Secrets, reached as `client.secrets`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of SecretService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(SecretServiceStub)

    async def set(
        self,
        name: str,
        values: Mapping[str, bytes],
        *,
        kind: SecretKind = SecretKind.GENERIC,
        project: str = "",
        replace: bool = False,
    ) -> Secret:
        """Store a secret with these values and no others; ConflictError if one is there that must not be replaced.

        >>> await client.secrets.set("wandb", {"key": b"0123456789"}, project="vision")
        """
        request = pb.PutSecretRequest(project=project, name=name, kind=kind, values=values, replace=replace)
        return secret_from_wire(await self._calls.ask(self._stub.Put, request, pauses=()))

    async def list(self, project: str = "") -> tuple[Secret, ...]:
        """What is known of a project's secrets, by name; never a value.

        >>> names = [secret.name for secret in await client.secrets.list("vision")]
        """
        answer = await self._calls.ask(self._stub.List, pb.ListSecretsRequest(project=project))
        return tuple(map(secret_from_wire, answer.secrets))

    async def remove(self, name: str, project: str = "") -> None:
        """Forget a secret; executions that have it keep it until they end.

        >>> await client.secrets.remove("wandb", "vision")
        """
        await self._calls.ask(self._stub.Remove, pb.RemoveSecretRequest(project=project, name=name), pauses=())
