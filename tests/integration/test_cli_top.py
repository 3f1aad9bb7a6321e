"""The command top: tables and documents of what ranks and nodes use."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from muster.cli.exit_codes import ExitCode
from muster.domain.ids import ExecutionId, GpuUuid, NodeId
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.telemetry.sample import ExecutionUse, GpuUse, HostUse, NodeSample, Sample
from muster.rpc.v1 import telemetry_pb2
from tests.integration.canned_coordinator import Canned, serving
from tests.integration.command_line import Muster
from tests.unit.cli import values

FIRST, SECOND = values.execution(0, State.RUNNING), values.execution(1, State.RUNNING)
MIB = 2**20


def sample(node: str, execution: ExecutionId, *gpus: float) -> NodeSample:
    return NodeSample(
        NodeId(node),
        Sample(
            at=datetime(2026, 11, 26, 9, tzinfo=UTC),
            span=timedelta(seconds=10),
            host=HostUse(cpus=7.5, memory=512 * MIB, memory_total=1024 * MIB, receive_rate=2.0 * MIB),
            gpus=[
                (GpuUuid(f"GPU-{number}"), GpuUse(busy=busy, memory=1024 * MIB, watts=300))
                for number, busy in enumerate(gpus)
            ],
            executions=[(execution, ExecutionUse(cpus=1.25, memory=256 * MIB, read_rate=3.0 * MIB, processes=4))],
        ),
    )


@pytest.fixture
def muster() -> Iterator[Muster]:
    running = values.job(JobPhase.RUNNING, values.attempt(FIRST, SECOND))
    canned = Canned(jobs=[running])
    assert FIRST.node is not None
    canned.samples = [[sample(FIRST.node, FIRST.id)]]
    with serving(canned) as address:
        yield Muster(canned, address)


def test_each_rank_has_a_line_also_one_of_which_nobody_has_told(muster: Muster) -> None:
    head, first, second = muster("top", muster.canned.jobs[0].id).stdout.splitlines()

    assert head.split()[:4] == ["RANK", "NODE", "GPUS", "BUSY"]
    assert first.split() == [
        "0", FIRST.node, "-", "-", "-", "-", "1.2", "256", "MiB", "3", "MiB", "-", "4",
    ]  # fmt: skip
    assert second.split()[:3] == ["1", SECOND.node, "-"]


def test_a_rank_that_does_other_than_its_role_is_marked(muster: Muster) -> None:
    ranks = [replace(values.execution(rank, State.RUNNING), node=NodeId(f"n{rank}"), gpus=()) for rank in range(3)]
    muster.canned.jobs[0] = values.job(JobPhase.RUNNING, values.attempt(*ranks))
    busy = [sample(f"n{rank}", each.id) for rank, each in enumerate(ranks)]
    muster.canned.samples = [busy]
    assert "DIFFERS" not in muster("top", muster.canned.jobs[0].id).stdout

    idle = replace(busy[2].sample, executions=[(ranks[2].id, ExecutionUse(cpus=0.01, memory=256 * MIB))])
    muster.canned.samples = [[*busy[:2], NodeSample(NodeId("n2"), idle)]]
    head, *lines = muster("top", muster.canned.jobs[0].id).stdout.splitlines()
    assert head.split()[-1] == "DIFFERS"
    assert [line.split()[-1] for line in lines] == ["4", "4", "cpus"]
    rows = json.loads(muster("top", muster.canned.jobs[0].id, "-o", "json").stdout)
    assert [row["differs"] for row in rows] == [{}, {}, {"cpus": "it keeps 0.0 CPUs busy, the others 1.2"}]


def test_a_node_has_a_bar_for_each_gpu(muster: Muster) -> None:
    muster.canned.samples = [[sample("node-10", FIRST.id, 0.0, 0.5, 1.0), sample("node-2", SECOND.id)]]

    head, first, second = muster("top").stdout.splitlines()

    assert head.split()[:4] == ["NODE", "GPUS", "BUSY", "GPU"]
    assert first.split()[0] == "node-2"
    assert second.split() == [
        "node-10", "▁▅█", "50%", "3", "GiB", "900", "7.5", "512", "MiB/1", "GiB", "-", "-", "2", "MiB", "-", "1",
    ]  # fmt: skip


def test_documents_have_every_number(muster: Muster) -> None:
    found = json.loads(muster("top", muster.canned.jobs[0].id, "-o", "json").stdout)

    assert [(rank["rank"], rank["execution"]) for rank in found] == [(0, FIRST.id), (1, SECOND.id)]
    assert found[0]["use"]["memory"] == 256 * MIB
    assert found[1]["use"] is None


def test_who_follows_gets_a_document_of_each_row_as_samples_come(muster: Muster) -> None:
    muster.canned.samples = [[], [sample("a", FIRST.id)], [sample("a", FIRST.id)]]

    lines = muster("top", "-f", "--node", "a", "-o", "json").stdout.splitlines()

    assert [json.loads(line)["node"] for line in lines] == ["a", "a"]
    asked = muster.canned.asked[-1]
    assert asked == telemetry_pb2.NodeSamplesRequest(nodes=["a"], follow=True)


def test_where_nobody_has_told_it_says_so(muster: Muster) -> None:
    muster.canned.samples = [[]]

    answer = muster("top", "--once")

    assert answer.exit_code == ExitCode.SUCCESS
    assert "nodes tell every 10 s" in answer.output


@pytest.mark.parametrize("words", [("train", "--node", "a"), ("--once", "--follow")])
def test_options_that_do_not_go_together_are_refused(muster: Muster, words: tuple[str, ...]) -> None:
    assert muster("top", *words).exit_code == ExitCode.USAGE
