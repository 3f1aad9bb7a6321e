"""How each door knows who comes in: by the token of `muster up`, by an API token, or by a node's certificate."""

import hmac
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import lru_cache

from coordinator.rpc.callers import Context, Who
from coordinator.rpc.limits import AGENT_CONNECTIONS
from coordinator.trust.caller import LOCAL, Caller, RefusedError
from coordinator.trust.joined_nodes import JoinedNodes
from coordinator.trust.registry import Registry
from muster.trust.certificates import facts, signer_of
from muster.trust.identity import CertificateError, CertificateFacts

_BEARER = "bearer "
_LOG_IN = "the coordinator wants to know who you are: log in with `muster login`, or set MUSTER_TOKEN"


def by_token(registry: Registry) -> Who:
    """Clients show API tokens."""

    def who(metadata: Mapping[str, str], context: Context, now: datetime) -> Caller:
        return registry.caller_with(_bearer(metadata), now, str(context.peer()))

    return who


def by_local_token(secret: str, registry: Registry) -> Who:
    """Everybody shows the token of `muster up`, or an API token."""

    def who(metadata: Mapping[str, str], context: Context, now: datetime) -> Caller:
        shown, origin = _bearer(metadata), str(context.peer())
        if hmac.compare_digest(shown.encode(), secret.encode()):
            return replace(LOCAL, origin=origin)
        return registry.caller_with(shown, now, origin)

    return who


def by_certificate(nodes: JoinedNodes) -> Who:
    """Agents show certificates, which gRPC has verified."""

    def who(metadata: Mapping[str, str], context: Context, now: datetime) -> Caller:
        del metadata, now
        shown = context.auth_context().get("x509_pem_cert", ())
        try:
            said, signer = _said(bytes(next(iter(shown))))
        except (StopIteration, CertificateError):
            raise RefusedError("agents must show the certificate of their node", "no certificate") from None
        return nodes.caller_with(said.node, said.key, said.not_after, signer, str(context.peer()))

    return who


@lru_cache(maxsize=AGENT_CONNECTIONS)
def _said(certificate: bytes) -> tuple[CertificateFacts, str]:
    """What a certificate says, and the id of its authority; read once, as a node shows the same one with every call."""
    return facts(certificate), signer_of(certificate)


def _bearer(metadata: Mapping[str, str]) -> str:
    shown = metadata.get("authorization", "")
    if not isinstance(shown, str) or not shown.lower().startswith(_BEARER):
        raise RefusedError(_LOG_IN, "no token")
    return shown[len(_BEARER) :]
