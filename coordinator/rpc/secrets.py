"""The clients' side: secrets, which are put here and never read back."""

from typing import Any

from coordinator.clock import wall_time
from coordinator.rpc.callers import Context, caller, entry
from coordinator.rpc.refusals import translated
from coordinator.trust.audit import shortened
from coordinator.trust.secrets import Secrets
from muster.domain.access import AuditEntry
from muster.domain.job import DEFAULT_PROJECT
from muster.domain.secret import Secret, SecretKind
from muster.rpc.v1 import trust_pb2 as pb
from muster.rpc.v1 import trust_pb2_grpc
from muster.wire import checks
from muster.wire.secrets import secret_to_wire


class SecretService(trust_pb2_grpc.SecretServiceServicer):
    """Look at what is known of secrets, and change them; the gate has asked already whether the caller may."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    @translated
    async def Put(self, request: pb.PutSecretRequest, context: Context) -> pb.Secret:  # noqa: N802 - gRPC's name
        """A secret with these values from now on."""
        values, now = dict(request.values), wall_time()
        secret = Secret(
            project=request.project or DEFAULT_PROJECT,
            name=checks.label(request.name, "PutSecretRequest.name"),
            kind=checks.word(SecretKind, request.kind or SecretKind.GENERIC, "PutSecretRequest.kind"),
            keys=tuple(sorted(values)),
            created_at=now,
            updated_at=now,
            updated_by=caller().name,
            server=values.get("server", b"").decode(errors="replace").strip() if request.kind in _HAVE_SERVERS else "",
        )
        done = _done(context, "Put", secret.project, secret.name, f"{secret.kind} with {', '.join(secret.keys)}")
        return secret_to_wire(await self._secrets.put(secret, values, done, again=request.replace))

    @translated
    async def List(self, request: pb.ListSecretsRequest, context: Any) -> pb.ListSecretsResponse:  # noqa: ANN401, ARG002, N802
        """What is known of a project's secrets, by name."""
        known = self._secrets.of_project(request.project or DEFAULT_PROJECT)
        return pb.ListSecretsResponse(secrets=[secret_to_wire(each) for _, each in sorted(known.items())])

    @translated
    async def Remove(self, request: pb.RemoveSecretRequest, context: Context) -> pb.RemoveSecretResponse:  # noqa: N802
        """A secret less."""
        project = request.project or DEFAULT_PROJECT
        await self._secrets.remove(project, request.name, _done(context, "Remove", project, request.name))
        return pb.RemoveSecretResponse()


_HAVE_SERVERS = frozenset({SecretKind.REGISTRY, SecretKind.GIT})


def _done(context: Context, call: str, project: str, name: str, how: str = "") -> AuditEntry:
    """What is written together with a change."""
    method = f"/muster.rpc.v1.SecretService/{call}"
    result = f"ok, {how}" if how else "ok"
    return shortened(entry(context, method, f"{project}/{name}", result, wall_time()))
