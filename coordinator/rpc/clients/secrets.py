"""The clients' calls about secrets, as gRPC has them."""

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.refusals import translated
from coordinator.service.secrets import SecretOperations
from muster.domain.fleet.secret import SecretKind
from muster.rpc.v1 import trust_pb2 as pb
from muster.rpc.v1 import trust_pb2_grpc
from muster.wire import checks
from muster.wire.secrets import secret_to_wire


class SecretService(trust_pb2_grpc.SecretServiceServicer):
    """Translates calls about secrets."""

    def __init__(self, secrets: SecretOperations) -> None:
        self._secrets = secrets

    @translated
    async def Put(self, request: pb.PutSecretRequest, context: Context) -> pb.Secret:
        """A secret with these values from now on."""
        name = checks.label(request.name, "PutSecretRequest.name")
        kind = checks.word(SecretKind, request.kind or SecretKind.GENERIC, "PutSecretRequest.kind")
        secret = await self._secrets.set(
            caller(), request.project, name, dict(request.values), kind=kind, replace=request.replace
        )
        return secret_to_wire(secret)

    @translated
    async def List(self, request: pb.ListSecretsRequest, context: Context) -> pb.ListSecretsResponse:
        """What is known of a project's secrets, by name."""
        return pb.ListSecretsResponse(secrets=map(secret_to_wire, await self._secrets.list(caller(), request.project)))

    @translated
    async def Remove(self, request: pb.RemoveSecretRequest, context: Context) -> pb.RemoveSecretResponse:
        """Forget a secret."""
        await self._secrets.remove(caller(), request.project, request.name)
        return pb.RemoveSecretResponse()
