"""The SDK for the secrets of projects: they are put and listed; nobody reads a value back."""

from collections.abc import Mapping
from typing import Any

from muster.client.trust import TrustCall
from muster.domain.fleet.secret import Secret, SecretKind
from muster.domain.jobs.job import DEFAULT_PROJECT
from muster.rpc.v1 import trust_pb2 as pb
from muster.wire import secret_from_wire


class SecretsClient:
    """Reached as `client.secrets`."""

    def __init__(self, ask: TrustCall, stub: Any) -> None:  # noqa: ANN401 - the stub of SecretService
        self._ask = ask
        self._stub = stub

    async def put(
        self,
        name: str,
        values: Mapping[str, bytes],
        *,
        kind: SecretKind = SecretKind.GENERIC,
        project: str = DEFAULT_PROJECT,
        replace: bool = False,
    ) -> Secret:
        """A secret with these values and no others; ConflictError if one is there that must not be replaced."""
        request = pb.PutSecretRequest(project=project, name=name, kind=kind, values=values, replace=replace)
        return secret_from_wire(await self._ask(self._stub.Put, request, pauses=()))

    async def list(self, project: str = DEFAULT_PROJECT) -> tuple[Secret, ...]:
        """What is known of a project's secrets, by name."""
        answer = await self._ask(self._stub.List, pb.ListSecretsRequest(project=project))
        return tuple(map(secret_from_wire, answer.secrets))

    async def remove(self, name: str, project: str = DEFAULT_PROJECT) -> None:
        """Forget a secret; executions that have it keep it until they end."""
        await self._ask(self._stub.Remove, pb.RemoveSecretRequest(project=project, name=name), pauses=())
