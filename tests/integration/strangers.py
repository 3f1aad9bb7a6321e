"""What pretends to be an agent, or is one that does not behave: bare streams and messages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import grpc
import grpc.aio

from muster import wire
from muster.domain.fleet.node import Inventory
from muster.rpc import protocol
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1.agents_pb2_grpc import AgentServiceStub
from tests.integration.fleet import Fleet

Stub = Any
INVALID = grpc.StatusCode.INVALID_ARGUMENT


@asynccontextmanager
async def stranger(fleet: Fleet) -> AsyncIterator[Stub]:
    """A bare connection to the coordinator."""
    async with grpc.aio.insecure_channel(fleet.address) as channel:
        yield AgentServiceStub(channel)


def hello(node: str = "x", **fields: object) -> pb.AgentMessage:
    """The message with which an agent begins."""
    given: dict[str, Any] = {
        "identity": "stranger",
        "address": "127.0.0.99",
        "inventory": wire.inventory_to_wire(Inventory(cpus=1, memory=1 << 30)),
        "protocol": protocol.PROTOCOL_VERSION,
        **fields,
    }
    return pb.AgentMessage(hello=pb.Hello(node=node, **given))


def reports(*each: pb.ExecutionReport) -> pb.AgentMessage:
    """How far executions are."""
    return pb.AgentMessage(reports=pb.Reports(reports=each))


async def refusal(call: Any) -> tuple[grpc.StatusCode, str | None]:
    """How a stream ends, with whatever was sent before."""
    with suppress(grpc.aio.AioRpcError):
        while await call.read() is not grpc.aio.EOF:
            pass
    return await call.code(), await call.details()
