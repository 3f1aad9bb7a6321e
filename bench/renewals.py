"""What the renewal of a node's certificate costs the coordinator: `python -m bench.renewals [NODES]`.

Nodes do what their agents do, one after the other: ask for a certificate for a new key on a connection of its own, and
connect anew with it until they are welcomed. What is told is the CPU of the coordinator's program, its disk included.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from agent.identity.enrolment import join
from bench.core_fleet import inventory
from bench.fleet import coordinator
from bench.programs import ProgramError, cpu_seconds
from coordinator.rpc.agents.renewals import RENEWALS
from muster import wire
from muster.domain.ids import NodeId
from muster.rpc import protocol
from muster.rpc.channel import AGENT_CHANNEL_OPTIONS, Credentials, open_channel
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc
from muster.trust.certificates import new_key, request_certificate
from muster.trust.tokens import parse_join_token

NODES = 200
FLEET = 5000
"""Nodes for which the time of one round is told."""


class Node:
    """A node that has joined."""

    def __init__(self, name: NodeId, agents: str, shown: Credentials) -> None:
        self._name = name
        self._agents = agents
        self._shown = shown
        self._inventory = wire.inventory_to_wire(inventory(name))
        self._opened = 0

    async def renew(self) -> None:
        """Get a certificate for a new key, and show it."""
        key = new_key()
        async with open_channel(self._agents, self._shown, AGENT_CHANNEL_OPTIONS) as channel:
            stub: Any = agents_pb2_grpc.AgentServiceStub(channel)
            answer = await stub.Renew(pb.RenewRequest(request=request_certificate(key, self._name)))
        self._shown = Credentials(authority=answer.authorities, certificate=answer.certificate, key=key)
        await self.connect()

    async def connect(self) -> None:
        """Be welcomed with the certificate that there is."""
        self._opened += 1
        async with open_channel(self._agents, self._shown, AGENT_CHANNEL_OPTIONS) as channel:
            stub: Any = agents_pb2_grpc.AgentServiceStub(channel)
            call = stub.Connect()
            hello = pb.Hello(node=self._name, identity=self._name, version="bench", address="10.0.0.1")
            hello.inventory.CopyFrom(self._inventory)
            hello.opened, hello.protocol = self._opened, protocol.PROTOCOL_VERSION
            await call.write(pb.AgentMessage(hello=hello))
            welcome = await call.read()
            if not isinstance(welcome, pb.CoordinatorMessage) or not welcome.HasField("welcome"):
                raise ProgramError(f"{self._name} was not welcomed")
            call.cancel()


async def main() -> None:
    """Measure, and print a line for each figure."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else NODES
    with tempfile.TemporaryDirectory() as directory:
        async with coordinator(Path(directory)) as it:
            token = parse_join_token(it.join_token)
            nodes = []
            for number in range(count):
                name, key = NodeId(f"node{number:05}"), new_key()
                member = await join(it.address, token, name, key)
                shown = Credentials(authority=member.authority, certificate=member.certificate, key=key)
                nodes.append(Node(name, member.agents, shown))
                await nodes[-1].connect()
            used, began = cpu_seconds(it.coordinator), time.perf_counter()
            for node in nodes:
                await node.renew()
            took = time.perf_counter() - began
            each = (cpu_seconds(it.coordinator) - used) / count
    print(f"one renewal           {1000 * each:.1f} ms of the coordinator's CPU ({count} nodes, {took:.1f} s)")
    share, lasts = 100 * RENEWALS * each, FLEET / RENEWALS
    print(f"at {RENEWALS} nodes a second  {share:.0f} % of one core; {lasts:.0f} s for {FLEET} nodes")


if __name__ == "__main__":
    asyncio.run(main())
