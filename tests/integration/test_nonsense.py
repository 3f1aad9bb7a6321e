"""Agents that say what cannot be: nodes and jobs of others go on as if nothing had been said."""

from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from muster import wire
from muster.domain.fleet.node import Inventory, RuntimeOffer
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import RuntimeKind
from muster.domain.jobs.lifecycle import JobPhase
from muster.rpc.v1 import agents_pb2 as pb
from muster.rpc.v1 import model_pb2
from tests.integration.fleet import SHOWN, executions, running_fleet
from tests.integration.jobs import shell
from tests.integration.strangers import INVALID, hello, refusal, reports, stranger


def told(execution: str, stage: pb.Stage.ValueType, code: int | None = None) -> pb.ExecutionReport:
    exit_ = None if code is None else model_pb2.Exit(code=code)
    report = pb.ExecutionReport(execution=execution, stage=stage, address="127.0.0.99", exit=exit_)
    report.at.GetCurrentTime()
    return report


def inventory(**fields: Any) -> model_pb2.Inventory:
    message = wire.inventory_to_wire(
        Inventory(cpus=1, memory=1 << 30, runtimes=(RuntimeOffer(kind=RuntimeKind.PROCESS),))
    )
    message.MergeFrom(model_pb2.Inventory(**fields))
    return message


async def test_an_execution_neither_goes_back_nor_ends_twice_and_unknown_ones_are_nobodys(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, stranger(fleet) as stub:
        call = stub.Connect(metadata=SHOWN.metadata)
        await call.write(hello(inventory=inventory(labels={"name": "x"})))
        job = await fleet.client.jobs.submit(shell("true", node_labels={"name": "x"}), queue_anyway=True)
        while not (message := await call.read()).plan.desired:
            pass
        mine = message.plan.desired[0].execution
        await call.write(reports(told(mine, pb.STAGE_RUNNING)))
        await call.write(reports(told(mine, pb.STAGE_PREPARING), told(mine, pb.STAGE_ARMED)))
        await call.write(reports(*(told(f"{job.id}-{number}-77", pb.STAGE_EXITED, 1) for number in range(1, 1000))))
        await call.write(reports(told(mine, pb.STAGE_EXITED, 0)))
        await call.write(reports(told(mine, pb.STAGE_EXITED, 9), told(mine, pb.STAGE_RUNNING)))
        job = await fleet.client.jobs.wait(job.id)
        assert (job.phase, executions(job)[0].exit) == (JobPhase.SUCCEEDED, Exit(code=0))
        assert (await fleet.run(shell("true", node_labels={"name": "a"}))).phase is JobPhase.SUCCEEDED
        assert fleet.journal.said("node disconnected") == []
        await call.done_writing()


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            {"gpus": [model_pb2.Gpu(uuid=f"GPU-{number}") for number in range(2000)]},
            "Inventory.gpus has 2000 entries; at most 1024 are taken",
        ),
        (
            {"gpus": [model_pb2.Gpu(uuid="MIG-1", mig="all of it")]},
            'Gpu.mig is "all of it", which is no MIG profile',
        ),
        (
            {"labels": {str(number): "" for number in range(1500)}},
            "Inventory.labels has 1500 entries; at most 1024 are taken",
        ),
        ({"kernel": "x" * 1_000_000}, "Inventory.kernel has 1000000 characters; at most 1024 are taken"),
    ],
    ids=["gpus", "mig", "labels", "kernel"],
)
async def test_a_node_that_is_larger_than_any_is_refused(tmp_path: Path, given: dict[str, Any], reason: str) -> None:
    async with running_fleet(tmp_path) as fleet, stranger(fleet) as stub:
        call = stub.Connect(metadata=SHOWN.metadata)
        await call.write(hello(inventory=inventory(**given)))
        assert await refusal(call) == (INVALID, reason)
        assert await fleet.client.nodes.list() == ()


async def test_text_that_is_no_text_ends_only_the_stream_on_which_it_came(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, grpc.aio.insecure_channel(fleet.address) as channel:
        call: Any = channel.stream_stream("/muster.rpc.v1.AgentService/Connect")(metadata=SHOWN.metadata)
        await call.write(b"\x0a\x04\x0a\x02\xff\xfe")  # a Hello whose node is two bytes that UTF-8 does not have
        code, _ = await refusal(call)
        assert code is not grpc.StatusCode.OK
        fleet.journal.forgive("grpc")
        assert [node.name for node in await fleet.client.nodes.list()] == ["a"]


async def test_an_agent_that_opens_stream_after_stream_has_one_in_the_end(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, stranger(fleet) as stub:
        calls = [stub.Connect(metadata=SHOWN.metadata) for _ in range(100)]
        for number, call in enumerate(calls):
            await call.write(hello(opened=number))
            assert (await call.read()).HasField("welcome")
        await fleet.journal.heard("node disconnected", 99, node="x")
        assert (await fleet.run(shell("true", node_labels={"name": "a"}))).phase is JobPhase.SUCCEEDED
        await calls[-1].write(pb.AgentMessage(heartbeat=pb.Heartbeat(sequence=1)))
        while not (await calls[-1].read()).HasField("heartbeat_ack"):
            pass
