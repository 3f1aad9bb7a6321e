"""A coordinator that refuses whatever agents call; tests say what it answers instead."""

from collections.abc import AsyncIterator
from typing import Any

import grpc

from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc

_UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED


class RefusingCoordinator(agents_pb2_grpc.AgentServiceServicer):
    """All calls of agents, each refused."""

    async def Connect(self, messages: AsyncIterator[pb.AgentMessage], context: Any) -> None:  # type: ignore[override]  # a server of grpc.aio has async methods, the stub of both kinds has not
        del messages
        await context.abort(_UNIMPLEMENTED)

    async def PushLogs(self, chunks: AsyncIterator[pb.LogChunk], context: Any) -> None:  # type: ignore[override]  # a server of grpc.aio has async methods, the stub of both kinds has not
        del chunks
        await context.abort(_UNIMPLEMENTED)

    async def Renew(self, request: pb.RenewRequest, context: Any) -> pb.RenewResponse:
        del request
        await context.abort(_UNIMPLEMENTED)
        raise AssertionError("abort raises")

    async def Data(self, request: pb.DataRequest, context: Any) -> pb.DataResponse:
        del request
        await context.abort(_UNIMPLEMENTED)
        raise AssertionError("abort raises")

    async def Swarm(self, request: pb.SwarmRequest, context: Any) -> pb.SwarmResponse:
        del request
        await context.abort(_UNIMPLEMENTED)
        raise AssertionError("abort raises")

    async def Inputs(self, request: pb.InputsRequest, context: Any) -> pb.InputsResponse:
        del request
        await context.abort(_UNIMPLEMENTED)
        raise AssertionError("abort raises")

    async def Image(self, request: pb.ImageRequest, context: Any) -> pb.ImageResponse:
        del request
        await context.abort(_UNIMPLEMENTED)
        raise AssertionError("abort raises")

    async def Secrets(self, request: pb.SecretsRequest, context: Any) -> pb.SecretsResponse:
        del request
        await context.abort(_UNIMPLEMENTED)
        raise AssertionError("abort raises")
