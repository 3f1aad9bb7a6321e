"""What containers may do beyond the default, as a role asks for it; what projects are opened for is in `projects`."""

from collections.abc import Sequence

from muster.domain.jobs.job import CAPABILITIES, MOST_PIDS, Security
from muster.rpc.v1 import model_pb2
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
    """What a role asks for."""
    return Security(
        capabilities=tuple(message.capabilities),
        privileged=message.privileged,
        gain_privileges=message.gain_privileges,
        image_user=message.image_user,
        pids=message.pids or None,
    )


def known_capabilities(names: Sequence[str], where: str) -> tuple[str, ...]:
    """Names of capabilities; raises WireError for what is none."""
    checks.few(names, where)
    checks.unique(names, where)
    if strange := [name for name in names if name not in CAPABILITIES]:
        raise WireError(where, f"has {strange[0][:80]!r}, which is no capability of Linux")
    return tuple(names)


def known_pids(count: int, where: str) -> int | None:
    """Most processes and threads; raises WireError."""
    return checks.between(count, 1, MOST_PIDS, where) if count else None
