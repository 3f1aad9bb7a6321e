"""What clients make of how gRPC says that calls ended."""

import grpc
import grpc.aio
import pytest

from muster.rpc.status import reason_lost

NONE = grpc.aio.Metadata()


@pytest.mark.parametrize(
    ("code", "details", "lost"),
    [
        (grpc.StatusCode.INTERNAL, "Internal error from Core", True),
        (grpc.StatusCode.INTERNAL, "the coordinator failed", False),
        (grpc.StatusCode.UNAUTHENTICATED, "Internal error from Core", False),
    ],
)
def test_a_reason_that_grpc_has_lost_is_told_from_one_that_the_coordinator_gave(
    code: grpc.StatusCode, details: str, lost: bool
) -> None:
    assert reason_lost(grpc.aio.AioRpcError(code, NONE, NONE, details)) is lost
