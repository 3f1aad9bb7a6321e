"""How executions ask for secrets."""

import re

from muster.domain.jobs.secret_use import KEY_FORM, SecretUse
from muster.rpc.v1 import model_pb2
from muster.wire.checks import WireError


def secret_use_to_wire(use: SecretUse) -> model_pb2.SecretUse:
    """A secret that an execution gets."""
    return model_pb2.SecretUse(
        secret=use.secret, env=use.env, directory=use.directory or "", standard_env=use.standard_env
    )


def secret_use_from_wire(message: model_pb2.SecretUse) -> SecretUse:
    """A secret that an execution gets."""
    return SecretUse(
        secret=message.secret,
        env=dict(message.env),
        directory=message.directory or None,
        standard_env=message.standard_env,
    )


def secret_key(value: str, where: str) -> str:
    """A key of a secret, which is also the name of a file; raises WireError."""
    if not re.fullmatch(KEY_FORM, value):
        raise WireError(where, f"has {value[:80]!r}; a key is letters, digits, dots, hyphens and underscores")
    return value
