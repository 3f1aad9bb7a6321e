"""Peers that do not behave: each is told what is wrong, and nobody else notices."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from agent.node import identity
from muster import wire
from muster.domain.errors import MusterError
from muster.domain.fleet.node import Inventory, RuntimeOffer
from muster.domain.jobs.job import RuntimeKind
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.rpc import protocol
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import model_pb2
from tests.integration.fleet import SHOWN, executions, running_fleet
from tests.integration.jobs import shell
from tests.integration.strangers import INVALID, hello, refusal, reports, stranger


@pytest.mark.parametrize(
    ("first", "reason"),
    [
        (pb.AgentMessage(), "AgentMessage is not Hello, with which an agent must begin"),
        (
            pb.AgentMessage(heartbeat=pb.Heartbeat(sequence=1)),
            "AgentMessage is not Hello, with which an agent must begin",
        ),
        (hello(identity=""), "Hello.identity is empty"),
        (hello(""), "Hello.node is ''; it must be letters, digits, dots, hyphens and underscores"),
        (hello("a b\n"), "Hello.node is 'a b\\n'; it must be letters, digits, dots, hyphens and underscores"),
        (hello(address="; rm"), "Hello.address is '; rm'; it must be an IP address or a host name"),
        (hello(inventory=None), "Hello.inventory is missing"),
        (
            hello(inventory=model_pb2.Inventory(cpus=1, runtimes=[model_pb2.RuntimeOffer(kind="vm")])),
            "RuntimeOffer.kind is 'vm'; known are docker, process",
        ),
        (
            hello(executions=[pb.ExecutionReport(execution="j-1-0", stage=77)]),  # type: ignore[arg-type]  # a number that stands for nothing
            "ExecutionReport.stage is 77, which is no stage",
        ),
    ],
)
async def test_a_bad_first_message_is_refused_with_the_reason(
    tmp_path: Path, first: pb.AgentMessage, reason: str
) -> None:
    async with running_fleet(tmp_path) as fleet, stranger(fleet) as stub:
        call = stub.Connect(metadata=SHOWN.metadata)
        await call.write(first)
        assert await refusal(call) == (INVALID, reason)
        assert await fleet.client.nodes.list() == ()


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        (
            0,
            ("the agent speaks an unnumbered version of the protocol, the coordinator version 1; upgrade the agent"),
        ),
        (
            6,
            ("the agent speaks version 6 of the protocol, the coordinator version 1; upgrade the coordinator"),
        ),
    ],
)
async def test_an_agent_of_another_time_is_told_who_must_be_upgraded(tmp_path: Path, version: int, reason: str) -> None:
    async with running_fleet(tmp_path) as fleet, stranger(fleet) as stub:
        call = stub.Connect(metadata=SHOWN.metadata)
        await call.write(hello(protocol=version))
        assert await refusal(call) == (grpc.StatusCode.FAILED_PRECONDITION, reason)
        assert await fleet.client.nodes.list() == ()


async def test_an_agent_that_says_more_of_itself_than_is_known_is_welcome(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet, stranger(fleet) as stub:
        call = stub.Connect(metadata=SHOWN.metadata)
        await call.write(hello(features=["secrets", "of-tomorrow"]))
        assert (await call.read()).welcome.protocol == protocol.PROTOCOL_VERSION


@pytest.mark.parametrize(
    ("later", "reason"),
    [
        (pb.AgentMessage(), "AgentMessage nothing is not expected after Hello"),
        (hello(), "AgentMessage hello is not expected after Hello"),
        (reports(pb.ExecutionReport(execution="j-1-0")), "ExecutionReport.stage is 0, which is no stage"),
        (reports(pb.ExecutionReport(execution="../x", stage=pb.STAGE_ARMED)), "ExecutionReport.at is missing"),
    ],
)
async def test_a_bad_later_message_ends_the_stream_and_harms_nobody_else(
    tmp_path: Path, later: pb.AgentMessage, reason: str
) -> None:
    async with running_fleet(tmp_path, "a") as fleet, stranger(fleet) as stub:
        call = stub.Connect(metadata=SHOWN.metadata)
        await call.write(hello())
        assert (await call.read()).HasField("welcome")
        await call.write(later)
        assert await refusal(call) == (INVALID, reason)

        job = await fleet.run(shell("true", node_labels={"name": "a"}))
        assert job.phase is JobPhase.SUCCEEDED
        assert fleet.journal.said("node disconnected", node="a") == []


async def test_bytes_that_are_no_message_end_the_stream(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, grpc.aio.insecure_channel(fleet.address) as channel:
        call: Any = channel.stream_stream("/muster.rpc.v1.AgentService/Connect")(metadata=SHOWN.metadata)
        await call.write(b"\xff\xff\xff garbage")
        code, _ = await refusal(call)
        assert code is not grpc.StatusCode.OK
        fleet.journal.forgive("grpc")
        assert (await fleet.run(shell("true"))).phase is JobPhase.SUCCEEDED


async def test_a_second_agent_of_a_name_is_refused_and_the_first_one_stays(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet:
        await fleet.start_agent("double", claims="a")
        refused = await fleet.journal.heard("no connection to the coordinator", 3, cause="FAILED_PRECONDITION")
        assert "another agent is connected as node a from 127.0.0.2; give each agent its own --name" in refused.cause  # type: ignore[attr-defined]  # a record has what it was logged with
        assert fleet.journal.said("node disconnected", node="a") == []
        assert (await fleet.run(shell("true"))).phase is JobPhase.SUCCEEDED
        (node,) = await fleet.client.nodes.list()
        assert node.address == "127.0.0.2"


async def test_a_node_that_opens_a_new_stream_loses_the_old_one(tmp_path: Path) -> None:
    async with running_fleet(tmp_path) as fleet, stranger(fleet) as stub:
        first, second = stub.Connect(metadata=SHOWN.metadata), stub.Connect(metadata=SHOWN.metadata)
        await first.write(hello())
        assert (await first.read()).HasField("welcome")
        await second.write(hello())
        assert (await second.read()).HasField("welcome")
        assert (await second.read()).HasField("plan")
        while (message := await first.read()) is not grpc.aio.EOF:
            assert message.HasField("plan")
        await second.write(pb.AgentMessage(heartbeat=pb.Heartbeat(sequence=7)))
        assert (await second.read()).heartbeat_ack.sequence == 7


async def test_a_log_of_another_node_is_not_taken(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, stranger(fleet) as stub:
        job = await fleet.run(shell("echo mine"))
        execution = executions(job)[0].id
        line = b"2026-11-21T08:48:50.123456789Z stdout F forged\n"
        call = stub.PushLogs(metadata=SHOWN.metadata)
        for node, name in (("x", execution), ("a", "nojob-1-0")):
            await call.write(pb.LogChunk(node=node, execution=name, offset=0, data=line))
            assert await call.read() == pb.LogAck(execution=name, unwanted=True)
        assert await fleet.texts(job.id, follow=True) == ["0 mine"]


async def test_a_log_that_is_no_log_is_not_taken(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, stranger(fleet) as stub:
        job = await fleet.client.jobs.submit(shell("sleep 60"))
        await fleet.until_states(job.id, State.RUNNING)
        name = f"{job.id}-1-0"
        call = stub.PushLogs(metadata=SHOWN.metadata)
        await call.write(pb.LogChunk(node="a", execution=name, offset=0, data=b"no time\n"))
        assert await call.read() == pb.LogAck(execution=name, unwanted=True)
        await fleet.client.jobs.stop(job.id)
        assert (await fleet.client.jobs.wait(job.id)).phase is JobPhase.STOPPED


async def test_a_report_about_the_execution_of_another_node_changes_nothing(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, stranger(fleet) as stub:
        job = await fleet.client.jobs.submit(shell("sleep 60"))
        await fleet.until_states(job.id, State.RUNNING)
        report = pb.ExecutionReport(execution=f"{job.id}-1-0", stage=pb.STAGE_EXITED, exit=model_pb2.Exit(code=9))
        report.at.GetCurrentTime()
        call = stub.Connect(metadata=SHOWN.metadata)
        await call.write(hello())
        await call.write(reports(report))
        await call.write(pb.AgentMessage(heartbeat=pb.Heartbeat(sequence=1)))
        while not (await call.read()).HasField("heartbeat_ack"):
            pass
        assert (await fleet.client.jobs.get(job.id)).phase is JobPhase.RUNNING
        await fleet.client.jobs.stop(job.id)
        assert executions(await fleet.client.jobs.wait(job.id))[0].state is State.STOPPED


def test_an_agent_keeps_its_identity(tmp_path: Path) -> None:
    assert identity(tmp_path) == identity(tmp_path)
    assert identity(tmp_path) != identity(tmp_path / "other")


@pytest.mark.parametrize("content", [b"", b"\xff\0\xfe", b"../../etc\n", b"n" * 5000])
def test_an_identity_that_is_damaged_is_refused_with_the_name_of_the_file(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "identity").write_bytes(content)
    with pytest.raises(MusterError, match=rf"{tmp_path}/identity is damaged: .* Put back a copy, or remove the file"):
        identity(tmp_path)


@pytest.mark.parametrize("stage", [pb.STAGE_ARMED, pb.STAGE_RUNNING])
async def test_an_agent_that_does_not_say_where_its_execution_is_harms_only_that_job(
    tmp_path: Path, stage: pb.Stage.ValueType
) -> None:
    async with running_fleet(tmp_path, "a") as fleet, stranger(fleet) as stub:
        call = stub.Connect(metadata=SHOWN.metadata)
        offer = RuntimeOffer(kind=RuntimeKind.PROCESS)
        inventory = wire.inventory_to_wire(Inventory(cpus=1, memory=1 << 30, runtimes=(offer,)))
        await call.write(hello(inventory=inventory))
        spec = shell("true", 2, max_per_node=1, check_in=timedelta(seconds=1))
        job = await fleet.client.jobs.submit(spec, queue_anyway=True)
        while not (message := await call.read()).plan.desired:
            pass
        report = pb.ExecutionReport(execution=message.plan.desired[0].execution, stage=stage)
        report.at.GetCurrentTime()
        await call.write(reports(report))
        view = await fleet.until(job.id, lambda view: view.failure is not None)
        assert view.failure is not None
        assert (view.failure.node, view.failure.message) == ("x", "its agent does not say where its peers reach it")
        assert fleet.journal.said("node disconnected", node="a") == []
        await call.done_writing()
        other = await fleet.run(shell("true", node_labels={"name": "a"}))
        assert other.phase is JobPhase.SUCCEEDED
