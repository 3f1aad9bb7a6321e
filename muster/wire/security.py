"""What containers may do beyond the default: as a role asks for it, and as a project is opened for it."""

from collections.abc import Sequence

from muster.domain.access import CAPABILITIES, MOST_PIDS, Policy
from muster.domain.job import Security
from muster.rpc.v1 import model_pb2, trust_pb2
from muster.wire import checks
from muster.wire.checks import WireError


def security_to_wire(security: Security) -> model_pb2.Security | None:
    """What a role asks for; nothing for one that asks for nothing."""
    if security == Security():
        return None
    return model_pb2.Security(
        capabilities=security.capabilities,
        privileged=security.privileged,
        gain_privileges=security.gain_privileges,
        image_user=security.image_user,
        pids=security.pids or 0,
    )


def security_from_wire(message: model_pb2.Security) -> Security:
    """What a role asks for; raises WireError."""
    return Security(
        capabilities=_capabilities(message.capabilities, "Security.capabilities"),
        privileged=message.privileged,
        gain_privileges=message.gain_privileges,
        image_user=message.image_user,
        pids=_pids(message.pids, "Security.pids"),
    )


def policy_to_wire(policy: Policy) -> trust_pb2.Policy | None:
    """What a project is opened for; nothing for one that is not opened."""
    if policy == Policy():
        return None
    return trust_pb2.Policy(
        capabilities=sorted(policy.capabilities),
        privileged=policy.privileged,
        gain_privileges=policy.gain_privileges,
        any_user=policy.any_user,
        host_paths=policy.host_paths,
        pids=policy.pids or 0,
    )


def policy_from_wire(message: trust_pb2.Policy) -> Policy:
    """What a project is opened for; raises WireError."""
    checks.few(message.host_paths, "Policy.host_paths")
    checks.unique(message.host_paths, "Policy.host_paths")
    return Policy(
        capabilities=frozenset(_capabilities(message.capabilities, "Policy.capabilities")),
        privileged=message.privileged,
        gain_privileges=message.gain_privileges,
        any_user=message.any_user,
        host_paths=tuple(checks.absolute(path, "Policy.host_paths") for path in message.host_paths),
        pids=_pids(message.pids, "Policy.pids"),
    )


def _capabilities(names: Sequence[str], where: str) -> tuple[str, ...]:
    checks.few(names, where)
    checks.unique(names, where)
    if strange := [name for name in names if name not in CAPABILITIES]:
        raise WireError(where, f"has {strange[0][:80]!r}, which is no capability of Linux")
    return tuple(names)


def _pids(count: int, where: str) -> int | None:
    return checks.between(count, 1, MOST_PIDS, where) if count else None
