"""Connections break, hang and come back in every phase of a job; nothing starts twice and nothing is forgotten."""

import asyncio
import os
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from agent.core.events import PlanReceived
from agent.fencing.clock import Clock
from agent.link import Coordinator, Link, Mail, rest
from agent.logs.push import LogPusher
from agent.mailbox import Inbox, Outbox
from agent.secrets.calls import SecretCalls
from muster.domain.attachments.request import AttachmentOrder, NoticeForAttached
from muster.domain.data.kept.image import ImageClearance
from muster.domain.data.kept.pull import ImagePull
from muster.domain.data.volume import VolumeRemoval
from muster.domain.fleet.node import NodeState
from muster.domain.ids import ExecutionId, NodeId
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.rpc import protocol
from muster.rpc.channel import open_channel
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import agents_pb2_grpc
from tests.integration.fleet import executions, running_fleet, states_of
from tests.integration.jobs import shell
from tests.integration.journal import Journal
from tests.integration.obstacles import RuntimeWithObstacles
from tests.integration.refusing_coordinator import RefusingCoordinator


@pytest.mark.parametrize("gate", ["prepare", "arm", "start", "remove"])
async def test_a_connection_that_breaks_in_any_phase_changes_nothing(tmp_path: Path, gate: str) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        late = RuntimeWithObstacles()
        late.gates[gate].close()
        await fleet.start_agent("b", runtime=late)
        await fleet.connected("b")
        job = await fleet.client.jobs.submit(shell("echo once", 2, max_per_node=1))
        await late.gates[gate].reached.wait()
        fleet.cable("b").cut()
        await fleet.journal.heard("node disconnected", node="b")
        late.gates[gate].open()
        fleet.cable("b").mend()
        ended = await fleet.client.jobs.wait(job.id)
        assert (ended.phase, len(ended.attempts)) == (JobPhase.SUCCEEDED, 1)
        assert sorted(await fleet.texts(job.id, follow=True)) == ["0 once", "1 once"]
        times = Counter(step.state for each in executions(ended) for step in each.transitions)
        assert set(times.values()) == {2}


async def test_a_connection_that_breaks_while_an_execution_is_stopped_does_not_end_it_early(tmp_path: Path) -> None:
    """The GPUs of such an execution are not free before the node says so."""
    async with running_fleet(tmp_path) as fleet:
        late = RuntimeWithObstacles()
        late.gates["arm"].close()
        await fleet.start_agent("a", runtime=late)
        await fleet.connected("a")
        job = await fleet.client.jobs.submit(shell("true", gpus=8))
        await late.gates["arm"].reached.wait()
        late.gates["stop"].close()
        await fleet.client.jobs.stop(job.id)
        late.gates["arm"].open()
        await late.gates["stop"].reached.wait()
        fleet.cable("a").cut()
        await fleet.journal.heard("node disconnected", node="a")
        fleet.cable("a").mend()
        await fleet.connected("a", 2)
        assert states_of(await fleet.client.jobs.get(job.id)) == (State.STOPPING,)
        (node,) = await fleet.client.nodes.list()
        assert len(node.gpus_taken) == 8
        late.gates["stop"].open()
        ended = await fleet.client.jobs.wait(job.id)
        assert (ended.phase, executions(ended)[0].failure) == (JobPhase.STOPPED, None)


async def test_output_that_is_printed_while_the_connection_is_broken_comes_later(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        fifo = tmp_path / "go"
        os.mkfifo(fifo)
        job = await fleet.client.jobs.submit(shell(f"echo first; read line < {fifo}; echo second; exec sleep 60"))
        await fleet.printed(job.id, 1)
        await fleet.until_states(job.id, State.RUNNING)
        fleet.cable("a").cut()
        await fleet.journal.heard("node disconnected", node="a")
        assert [node.state for node in await fleet.client.nodes.list()] == [NodeState.UNREACHABLE]
        assert (await fleet.client.jobs.get(job.id)).phase is JobPhase.RUNNING
        await fleet.tell(fifo)
        fleet.cable("a").mend()
        assert [line.text for line in await fleet.printed(job.id, 2)] == [b"first", b"second"]
        await fleet.connected("a", 2)
        assert [node.state for node in await fleet.client.nodes.list()] == [NodeState.READY]
        await fleet.client.jobs.stop(job.id)
        await fleet.client.jobs.wait(job.id)


async def test_nothing_is_placed_on_a_node_that_is_away(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        fleet.cable("a").cut()
        await fleet.journal.heard("node disconnected", node="a")
        job = await fleet.client.jobs.submit(shell("true"))
        (refusal,) = (await fleet.client.jobs.why(job.id)).refusals
        assert (refusal.node, refusal.reason) == ("a", "is unreachable: its agent is not connected")
        fleet.cable("a").mend()
        assert (await fleet.client.jobs.wait(job.id)).phase is JobPhase.SUCCEEDED


@pytest.mark.parametrize("upwards", [True, False])
async def test_a_connection_that_hangs_for_a_while_goes_on_where_it_was(tmp_path: Path, *, upwards: bool) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        fleet.cable("b").hold(upwards=upwards, downwards=not upwards)
        job = await fleet.client.jobs.submit(shell("echo once", 2, max_per_node=1))
        await fleet.until(job.id, lambda view: State.CHECKED_IN in states_of(view))
        assert Counter(states_of(await fleet.client.jobs.get(job.id))) == {State.CHECKED_IN: 1, State.PLACED: 1}
        fleet.cable("b").let_go()
        assert (await fleet.client.jobs.wait(job.id)).phase is JobPhase.SUCCEEDED
        assert fleet.journal.said("node disconnected") == []


async def test_a_connection_that_hangs_for_good_is_noticed_at_both_ends(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.client.jobs.submit(shell("exec sleep 60"))
        await fleet.until_states(job.id, State.RUNNING)
        fleet.cable("a").hold(upwards=True, downwards=True)
        await fleet.journal.heard("node disconnected", node="a")
        await fleet.journal.heard("no connection to the coordinator")
        fleet.cable("a").cut()
        fleet.cable("a").let_go()
        fleet.cable("a").mend()
        await fleet.connected("a", 2)
        await fleet.client.jobs.stop(job.id)
        assert (await fleet.client.jobs.wait(job.id)).phase is JobPhase.STOPPED


async def test_a_coordinator_that_cannot_keep_logs_still_runs_jobs_and_takes_the_logs_later(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.touch()
    async with running_fleet(tmp_path, "a") as fleet:
        job = await fleet.run(shell("echo kept"))
        assert job.phase is JobPhase.SUCCEEDED
        await fleet.journal.heard("logs cannot be carried", cause="cannot be kept")
        assert fleet.journal.said("node disconnected") == []
        logs.unlink()
        assert await fleet.texts(job.id, follow=True) == ["0 kept"]


class CoordinatorThatDropsStreams(RefusingCoordinator):
    """Welcomes agents, and ends their streams at once."""

    hellos = 0
    protocol = protocol.PROTOCOL_VERSION

    async def Connect(self, messages: AsyncIterator[pb.AgentMessage], context: Any) -> None:  # type: ignore[override]  # a server of grpc.aio has async methods, the stub of both kinds has not
        assert (await anext(aiter(messages))).HasField("hello")
        self.hellos += 1
        welcome = pb.Welcome(protocol=self.protocol)
        welcome.heartbeat_interval.FromSeconds(10)
        welcome.lease.FromSeconds(30)
        await context.write(pb.CoordinatorMessage(welcome=welcome))

    async def PushLogs(self, chunks: AsyncIterator[pb.LogChunk], context: Any) -> None:  # type: ignore[override]  # a server of grpc.aio has async methods, the stub of both kinds has not  # noqa: ARG002 - a call has both
        async for _ in chunks:
            pass


class CoordinatorThatSendsNonsense(CoordinatorThatDropsStreams):
    """A coordinator whose first answer is no welcome."""

    async def Connect(self, messages: AsyncIterator[pb.AgentMessage], context: Any) -> None:  # type: ignore[override]  # a server of grpc.aio has async methods, the stub of both kinds has not
        await context.write(pb.CoordinatorMessage(plan=pb.Plan(revision=1)))
        async for _ in messages:
            pass


class CoordinatorThatFallsSilent(CoordinatorThatDropsStreams):
    """Says welcome, and nothing after that, not even to heartbeats."""

    async def Connect(self, messages: AsyncIterator[pb.AgentMessage], context: Any) -> None:  # type: ignore[override]  # a server of grpc.aio has async methods, the stub of both kinds has not
        welcome = pb.Welcome(protocol=self.protocol)
        welcome.heartbeat_interval.FromMilliseconds(50)
        welcome.lease.FromMilliseconds(200)
        await context.write(pb.CoordinatorMessage(welcome=welcome))
        async for _ in messages:
            pass


class CoordinatorOfBefore(CoordinatorThatDropsStreams):
    """Knows nothing of versions of the protocol."""

    protocol = 0


class CoordinatorWithUnreadablePlans(CoordinatorThatDropsStreams):
    """Sends what is no message, a plan that is none, one that lacks its beginning, and one that is right."""

    async def Connect(self, messages: AsyncIterator[pb.AgentMessage], context: Any) -> None:  # type: ignore[override]  # a server of grpc.aio has async methods, the stub of both kinds has not
        self.hellos += 1
        welcome = pb.Welcome(protocol=self.protocol)
        welcome.heartbeat_interval.FromSeconds(10)
        welcome.lease.FromSeconds(30)
        await context.write(pb.CoordinatorMessage(welcome=welcome))
        for plan in (pb.Plan(), pb.Plan(revision=1, part=3), pb.Plan(revision=2)):
            await context.write(pb.CoordinatorMessage(plan=plan))
        async for _ in messages:
            pass


class CoordinatorThatSaysNothing(CoordinatorThatDropsStreams):
    """Takes streams, and that is all."""

    async def Connect(self, messages: AsyncIterator[pb.AgentMessage], context: Any) -> None:  # type: ignore[override]  # a server of grpc.aio has async methods, the stub of both kinds has not  # noqa: ARG002 - a call has both
        async for _ in messages:
            pass


class Nobody:
    """A node of which there is nothing to say."""

    def hello(self) -> pb.Hello:
        return pb.Hello()

    def applied(self, stream: int) -> int:
        del stream
        return 0

    def telemetry(self) -> bytes:
        return b""

    def tell(self, notice: NoticeForAttached) -> None:
        raise AssertionError(notice)

    def begin(self, order: AttachmentOrder) -> None:
        raise AssertionError(f"nobody attaches: {order}")

    def connected(self) -> None:
        pass

    def remove(self, order: VolumeRemoval) -> None:
        raise AssertionError(f"nothing is kept: {order}")

    def order(self, order: ImageClearance | ImagePull) -> None:
        raise AssertionError(f"nothing is pulled: {order}")


@asynccontextmanager
async def linked(
    coordinator: agents_pb2_grpc.AgentServiceServicer, inbox: Inbox | None = None
) -> AsyncIterator[Journal]:
    """An agent's link to such a coordinator, and what is logged."""
    server = grpc.aio.server()
    agents_pb2_grpc.add_AgentServiceServicer_to_server(coordinator, server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    journal = Journal()
    pusher = LogPusher(NodeId("a"), asyncio.Queue[ExecutionId]().put_nowait)
    mail = Mail(
        inbox=inbox or Inbox(),
        outbox=Outbox(),
        logs=pusher,
        secrets=SecretCalls(),
        attachments=Nobody(),
        volumes=Nobody(),
        images=Nobody(),
    )
    link = Link(Coordinator(address=lambda: address, patience=0.2), Nobody(), mail, Clock())
    journal.start()
    try:
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(link.run(), name="link")
            yield journal
            running.cancel()
    finally:
        journal.stop()
        await server.stop(None)
    assert journal.errors() == []


async def test_a_coordinator_that_drops_every_stream_is_not_pestered() -> None:
    """Seven pauses take longer than this, however the dice fall."""
    coordinator = CoordinatorThatDropsStreams()
    async with linked(coordinator) as journal:
        with suppress(TimeoutError):
            async with asyncio.timeout(1.5):
                await journal.heard("no connection to the coordinator", 100)
    assert 2 <= coordinator.hellos <= 7


async def test_a_pause_ends_as_soon_as_a_coordinator_is_there() -> None:
    """Longer than any test may take, otherwise."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    async with open_channel(address) as channel:
        with pytest.raises(grpc.aio.AioRpcError, match="UNAVAILABLE"):
            await agents_pb2_grpc.AgentServiceStub(channel).Renew(pb.RenewRequest())
        server = grpc.aio.server()
        server.add_insecure_port(address)
        async with asyncio.TaskGroup() as tasks:
            resting = tasks.create_task(rest(channel, 1000.0), name="rest")
            await server.start()
            await resting
        await server.stop(None)


@pytest.mark.parametrize(
    ("coordinator", "cause"),
    [
        (CoordinatorThatSendsNonsense(), "Welcome is not the first answer"),
        (CoordinatorOfBefore(), "Welcome.protocol is 0; it must be between 1 and 1"),
        (CoordinatorThatSaysNothing(), "no answer to Hello within 0.2 s"),
        (CoordinatorThatFallsSilent(), "silent for 0.2 s"),
    ],
)
async def test_a_coordinator_that_does_not_answer_as_it_should_is_asked_again(
    coordinator: agents_pb2_grpc.AgentServiceServicer, cause: str
) -> None:
    async with linked(coordinator) as journal:
        await journal.heard("no connection to the coordinator", 2, cause=cause)


async def revision(inbox: Inbox) -> int:
    """The number of the first plan that comes."""
    while True:
        for event in await inbox.some():
            if isinstance(event, PlanReceived):
                return event.plan.revision


async def test_a_plan_that_cannot_be_read_is_left_and_the_stream_goes_on() -> None:
    """The same plan would come again at once on a new stream, and meanwhile the node is away for everybody."""
    coordinator, inbox = CoordinatorWithUnreadablePlans(), Inbox()
    async with linked(coordinator, inbox) as journal:
        assert await revision(inbox) == 2
        await journal.heard("a plan cannot be read", cause="Plan.revision is 0; it must be between 1 and")
        await journal.heard(
            "a plan cannot be read", cause="Plan.part is 3, and 0 is due: a message of the plan is missing"
        )
    assert coordinator.hellos == 1
