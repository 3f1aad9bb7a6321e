"""Which operation each gRPC call is. A call that is not in this table is refused."""

from collections.abc import Mapping

_OURS: Mapping[str, Mapping[str, str]] = {
    "NodeService": {
        "List": "nodes.list",
        "Get": "nodes.get",
        "Remove": "nodes.remove",
        "Cordon": "nodes.cordon",
        "Uncordon": "nodes.uncordon",
        "Label": "nodes.label",
    },
    "SecretService": {
        "Put": "secrets.set",
        "List": "secrets.list",
        "Remove": "secrets.remove",
    },
}

OPERATIONS: Mapping[str, str] = {
    f"/muster.rpc.v1.{service}/{call}": operation
    for service, calls in _OURS.items()
    for call, operation in calls.items()
}
"""Operations by the path of the call."""


def operation_of(method: str) -> str:
    """What the audit log calls a call; one that is no operation has its own name, like `Health.Check`."""
    return OPERATIONS.get(method) or _short(method)


def _short(method: str) -> str:
    """`/muster.rpc.v1.JobService/Submit` as `JobService.Submit`."""
    service, _, call = method.rpartition("/")
    return f"{service.rpartition('.')[2]}.{call}"
