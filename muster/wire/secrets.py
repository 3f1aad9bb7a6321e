"""Secrets: what is known of them, how executions ask for them, and values on their way to an execution."""

import re
from collections.abc import Mapping

from muster.domain import secret as rules
from muster.domain.secret import DeliveredSecret, Secret, SecretKind, SecretUse
from muster.rpc.v1 import agents_pb2, model_pb2, trust_pb2
from muster.wire import checks
from muster.wire.checks import WireError


def secret_use_to_wire(use: SecretUse) -> model_pb2.SecretUse:
    """A secret that an execution gets."""
    return model_pb2.SecretUse(
        secret=use.secret, env=use.env, directory=use.directory or "", standard_env=use.standard_env
    )


def secret_use_from_wire(message: model_pb2.SecretUse) -> SecretUse:
    """A secret that an execution gets; raises WireError."""
    for variable, key in message.env.items():
        if not variable or "=" in checks.words((variable,), "SecretUse.env")[0]:
            raise WireError("SecretUse.env", f"has the name {variable!r}; a name is not empty and has no equals sign")
        if key:
            secret_key(key, "SecretUse.env")
    checks.few(message.env, "SecretUse.env")
    if message.env and message.standard_env:
        raise WireError("SecretUse.env", "names variables where standard_env asks for the usual ones")
    return SecretUse(
        secret=checks.label(message.secret, "SecretUse.secret"),
        env=dict(message.env),
        directory=checks.absolute(message.directory, "SecretUse.directory") if message.directory else None,
        standard_env=message.standard_env,
    )


def secret_key(value: str, where: str) -> str:
    """A key of a secret, which is also the name of a file; raises WireError."""
    if not re.fullmatch(rules.KEY_FORM, value):
        raise WireError(where, f"has {value[:80]!r}; a key is letters, digits, dots, hyphens and underscores")
    return value


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
