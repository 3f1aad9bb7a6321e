"""Many simulated agents in one program, each with a channel and a stream of its own, mTLS and heartbeats.

    MUSTER_JOIN_TOKEN=… python -m bench.crowd ADDRESS COUNT

First each joins, one after the other, and has a certificate of its own.

They do at once what a plan asks for and report it; nothing is started, rosters are not looked at, and there are no logs
to carry. What costs nothing while a fleet connects, because each node does it for itself and beforehand, is done
beforehand here, too: reading certificates, making channels. Orders come on stdin, one a line; each is answered with one
line of JSON:

* `connect`: all connect at once; seconds until the last was welcomed, and the median
* `drop`: all connections are closed at once
* `state`: how many are connected, how often a stream was lost
* `samples`: from now on heartbeats carry samples, of eight GPUs and eight executions; `bare`: they do not
"""

import asyncio
import json
import os
import random
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import grpc.aio

from agent.core.stream import FIRST_PAUSE, LONGEST_PAUSE, PAUSE_GROWTH
from bench.core_fleet import inventory
from muster import wire
from muster.domain.ids import GpuUuid, JobId, NodeId, execution_id
from muster.domain.telemetry.sample import ExecutionUse, GpuUse, HostUse, Sample
from muster.rpc import protocol
from muster.rpc.channel import AGENT_CHANNEL_OPTIONS, Credentials, open_channel
from muster.rpc.pinning import pinned_authority
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc, model_pb2, trust_pb2, trust_pb2_grpc
from muster.trust.certificates import new_key, request_certificate
from muster.trust.tokens import JoinToken, parse_join_token
from muster.wire.telemetry.samples import sample_to_wire

HEARTBEAT = 10.0
STAGES = {
    pb.GOAL_PREPARE: (pb.STAGE_PREPARING, pb.STAGE_PREPARED),
    pb.GOAL_ARM: (pb.STAGE_ARMED,),
    pb.GOAL_RUN: (pb.STAGE_RUNNING,),
    pb.GOAL_STOP: (pb.STAGE_STOPPED,),
}
"""What an agent reports once it has done what a goal asks for."""


class Agent:
    """One of the crowd."""

    def __init__(self, number: int, address: str, credentials: Credentials) -> None:
        self._name = f"node{number:05}"
        self._address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        self._coordinator = address
        self._credentials = credentials
        self._inventory = wire.inventory_to_wire(inventory(self._name))
        self._channel = open_channel(address, credentials, AGENT_CHANNEL_OPTIONS)
        self._opened = 0
        self._revision = 0
        self._reports: dict[str, pb.ExecutionReport] = {}
        self._writing = asyncio.Lock()
        self.lost = 0
        """How often the stream ended although nobody here wanted it to."""
        self._call: Any = None
        self._beats = 0

    @property
    def connected(self) -> bool:
        """Whether it has been welcomed on a stream that is still open."""
        return self._call is not None

    async def run(self, welcomed: "asyncio.Future[None]") -> None:
        """Streams, one after the other, until cancelled; with the pauses of real agents."""
        pause, clock = FIRST_PAUSE, asyncio.get_running_loop().time
        while True:
            began = clock()
            try:
                await self._stream(welcomed)
            except (grpc.aio.AioRpcError, asyncio.InvalidStateError, EOFError) as error:
                self.lost += 1
                print(f"{self._name} lost its stream: {error!r:.300}", file=sys.stderr, flush=True)
            lasted = clock() - began > LONGEST_PAUSE
            pause = FIRST_PAUSE if lasted else min(pause * PAUSE_GROWTH, LONGEST_PAUSE)
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - not a secret

    async def redial(self) -> None:
        """Break the connection, and have a channel for the next one."""
        await self._channel.close()
        self._channel = open_channel(self._coordinator, self._credentials, AGENT_CHANNEL_OPTIONS)

    async def beat(self, sample: bytes) -> None:
        """A heartbeat with a sample, while there is a stream."""
        if self._call is None:
            return
        self._beats += 1
        beat = pb.Heartbeat(sequence=self._beats, plan_revision=self._revision, telemetry=sample)
        # The reader hears of it if the stream ends just now.
        with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await self._write(self._call, pb.AgentMessage(heartbeat=beat))

    async def _stream(self, welcomed: "asyncio.Future[None]") -> None:
        stub: Any = agents_pb2_grpc.AgentServiceStub(self._channel)
        call = stub.Connect()
        try:
            await self._write(call, pb.AgentMessage(hello=self._hello()))
            if await call.read() is grpc.aio.EOF:
                raise EOFError
            self._call = call
            if not welcomed.done():
                welcomed.set_result(None)
            await self._read(call)
        finally:
            self._call = None
            call.cancel()

    async def _read(self, call: Any) -> None:  # noqa: ANN401 - grpc's generic call
        while True:
            message = await call.read()
            if message is grpc.aio.EOF:
                raise EOFError
            if message.HasField("plan"):
                self._revision = message.plan.revision
                for execution in message.plan.removed:
                    self._reports.pop(execution, None)
                reports = [report for line in message.plan.desired for report in self._obey(line)]
                if reports:
                    await self._write(call, pb.AgentMessage(reports=pb.Reports(reports=reports)))

    def _obey(self, line: pb.DesiredExecution) -> Iterable[pb.ExecutionReport]:
        known = self._reports.get(line.execution)
        for stage in STAGES[line.goal]:
            if known is not None and known.stage >= stage:
                continue
            report = self._reports[line.execution] = self._report(line.execution, stage)
            yield report

    def _report(self, execution: str, stage: "pb.Stage.ValueType") -> pb.ExecutionReport:
        report = pb.ExecutionReport(execution=execution, stage=stage, log_complete=stage == pb.STAGE_STOPPED)
        report.at.FromNanoseconds(time.time_ns())
        if stage != pb.STAGE_PREPARING:
            report.address = self._address
            report.ports.append(model_pb2.PortLease(name="master", host_port=20000, container_port=20000))
        return report

    async def _write(self, call: Any, message: pb.AgentMessage) -> None:  # noqa: ANN401 - grpc's generic call
        """GRPC loses messages of concurrent writers."""
        async with self._writing:
            await call.write(message)

    def _hello(self) -> pb.Hello:
        self._opened += 1
        return pb.Hello(
            node=self._name,
            identity=self._name,
            version="bench",
            address=self._address,
            inventory=self._inventory,
            executions=self._reports.values(),
            opened=self._opened,
            protocol=protocol.PROTOCOL_VERSION,
        )


def a_sample() -> Sample:
    """What a node with eight GPUs and as many executions used."""
    use = GpuUse(busy=0.913, busy_most=0.998, memory=61 << 30, watts=612, celsius=64, clock_mhz=1755)
    execution = ExecutionUse(cpus=3.71, cpus_most=4.2, memory=9 << 30, read_rate=2e6, write_rate=1e5, processes=73)
    return Sample(
        at=datetime.now(UTC),
        span=timedelta(seconds=HEARTBEAT),
        host=HostUse(cpus=31.4, memory=400 << 30, memory_total=2000 << 30, receive_rate=1e8, send_rate=1e8),
        gpus=[(GpuUuid(f"GPU-8c2f6a5e-5f0e-5a53-9d4b-6d757374610{number}"), use) for number in range(8)],
        executions=[(execution_id(JobId("k3f0abcd"), 1, rank), execution) for rank in range(8)],
    )


class Crowd:
    """All of them."""

    def __init__(self, agents: list[Agent], tasks: asyncio.TaskGroup) -> None:
        self._agents = agents
        self._tasks = tasks
        self._running: list[asyncio.Task[None]] = []
        self._sample = b""

    async def connect(self) -> dict[str, float]:
        """All at once."""
        began, loop = time.perf_counter(), asyncio.get_running_loop()
        waits: list[float] = []
        welcomes = []
        for number, agent in enumerate(self._agents):
            welcomed: asyncio.Future[None] = loop.create_future()
            welcomed.add_done_callback(lambda _: waits.append(time.perf_counter() - began))
            welcomes.append(welcomed)
            self._running.append(self._tasks.create_task(agent.run(welcomed), name=f"agent {number}"))
        await asyncio.gather(*welcomes)
        waits.sort()
        return {"all": waits[-1], "median": waits[len(waits) // 2]}

    async def drop(self) -> dict[str, float]:
        """All connections are closed."""
        for each in self._running:
            each.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        self._running.clear()
        await asyncio.gather(*(agent.redial() for agent in self._agents))
        return {}

    async def beat(self) -> None:
        """Have each send a heartbeat, in turn, for as long as they are there; one task for all of them."""
        clock = asyncio.get_running_loop().time
        due = clock()
        while True:
            for agent in self._agents:
                due += HEARTBEAT / len(self._agents)
                if due > clock():
                    await asyncio.sleep(due - clock())
                self._tasks.create_task(agent.beat(self._sample), name="heartbeat")

    async def samples(self) -> dict[str, float]:
        """Heartbeats carry samples."""
        self._sample = sample_to_wire(a_sample()).SerializeToString()
        return {"bytes": len(self._sample)}

    async def bare(self) -> dict[str, float]:
        """Heartbeats carry none."""
        self._sample = b""
        return {}

    async def state(self) -> dict[str, float]:
        """How they are."""
        connected = sum(agent.connected for agent in self._agents)
        return {"connected": connected, "lost": sum(agent.lost for agent in self._agents)}


async def main() -> None:
    """Obey until stdin ends."""
    address, count = sys.argv[1:]
    agents = await _joined(address, int(count), parse_join_token(os.environ["MUSTER_JOIN_TOKEN"]))
    async with asyncio.TaskGroup() as tasks:
        crowd = Crowd(agents, tasks)
        beating = tasks.create_task(crowd.beat(), name="heartbeats")
        orders = {
            "connect": crowd.connect,
            "drop": crowd.drop,
            "state": crowd.state,
            "samples": crowd.samples,
            "bare": crowd.bare,
        }
        while order := (await asyncio.to_thread(sys.stdin.readline)).strip():
            print(json.dumps(await orders[order]()), flush=True)
        beating.cancel()
        await crowd.drop()


async def _joined(address: str, count: int, token: JoinToken) -> list[Agent]:
    """The agents, each with a certificate; they share a key, which saves time and changes nothing that is measured."""
    authority, key = await pinned_authority(address, lambda found: found == token.authority), new_key()
    agents = []
    async with open_channel(address, Credentials(authority=authority)) as channel:
        stub: Any = trust_pb2_grpc.JoinServiceStub(channel)
        for number in range(count):
            name = NodeId(f"node{number:05}")
            request = trust_pb2.JoinRequest(token=str(token), node=name, request=request_certificate(key, name))
            answer = await stub.Join(request)
            shown = Credentials(authority=authority, certificate=answer.certificate, key=key)
            agents.append(Agent(number, f"{address.rpartition(':')[0]}:{answer.agents_port}", shown))
    return agents


if __name__ == "__main__":
    # Agents have loops of their own, in which little waits at a time. In this one they must not pay for each other.
    with asyncio.Runner() as runner:
        runner.run(main())
