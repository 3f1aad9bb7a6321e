"""Secrets: what is known of them, and values on their way to an execution."""

from collections.abc import Mapping

from muster.domain.fleet.secret import DeliveredSecret, Secret, SecretKind
from muster.rpc.v1 import agents_pb2, trust_pb2
from muster.wire import checks
from muster.wire.secret_uses import secret_key


def secret_to_wire(secret: Secret) -> trust_pb2.Secret:
    """What is known of a secret."""
    return trust_pb2.Secret(
        project=secret.project,
        name=secret.name,
        kind=secret.kind,
        keys=secret.keys,
        created_at=checks.timestamp(secret.created_at),
        updated_at=checks.timestamp(secret.updated_at),
        updated_by=secret.updated_by,
        server=secret.server,
    )


def secret_from_wire(message: trust_pb2.Secret) -> Secret:
    """What is known of a secret; raises WireError."""
    return Secret(
        project=checks.label(message.project, "Secret.project"),
        name=checks.label(message.name, "Secret.name"),
        kind=checks.word(SecretKind, message.kind, "Secret.kind"),
        keys=tuple(secret_key(key, "Secret.keys") for key in message.keys),
        created_at=checks.moment(message.created_at, "Secret.created_at"),
        updated_at=checks.moment(message.updated_at, "Secret.updated_at"),
        updated_by=message.updated_by,
        server=message.server,
    )


def delivered_to_wire(secret: DeliveredSecret) -> agents_pb2.DeliveredSecret:
    """A secret with its values."""
    return agents_pb2.DeliveredSecret(name=secret.name, kind=secret.kind, values=secret.values)


def delivered_from_wire(message: agents_pb2.DeliveredSecret) -> DeliveredSecret:
    """A secret with its values; raises WireError, which says nothing of them."""
    return DeliveredSecret(
        name=checks.label(message.name, "DeliveredSecret.name"),
        kind=checks.word(SecretKind, message.kind, "DeliveredSecret.kind"),
        values=_values(message.values),
    )


def _values(values: Mapping[str, bytes]) -> dict[str, bytes]:
    for key in values:
        secret_key(key, "DeliveredSecret.values")
    return dict(values)
