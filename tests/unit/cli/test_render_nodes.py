"""How nodes look."""

import json
from dataclasses import replace
from datetime import timedelta

from muster.cli.output.nodes import node_details, nodes_table
from muster.documents import document
from muster.domain.fleet.node import Cordon, NodeState, NodeView, RuntimeOffer
from muster.domain.ids import ExecutionId, GpuUuid
from muster.domain.jobs.job import RuntimeKind
from muster.domain.jobs.placing.portion import GpuShare
from tests.builders import mig_devices
from tests.unit.cli.values import START, gpu, node, shown


def test_a_list_of_nodes_says_what_is_free() -> None:
    busy = node("a", gpu(0), gpu(1, "Xid 79"), gpu(2), taken=("GPU-0",))

    assert shown(nodes_table([busy, node("b")], START)).splitlines() == [
        "NODE  STATE  GPUS FREE                          CPUS FREE    MEMORY FREE  EXECUTIONS  ADDRESS",
        "a     ready  1/3 NVIDIA H100 (1 with problems)      6.5/8  24 GiB/32 GiB           0  10.0.0.1",
        "b     ready  -                                      6.5/8  24 GiB/32 GiB           0  10.0.0.1",
    ]


def test_mig_devices_are_listed_by_profile() -> None:
    devices = mig_devices("a", "1g.10gb", "1g.10gb", "3g.40gb", index=1)
    divided = node("a", gpu(0), *devices, taken=("MIG-a-1-0",))

    assert "1/1 NVIDIA H100, 1/2 MIG 1g.10gb, 1/1 MIG 3g.40gb" in shown(nodes_table([divided], START))
    assert "0/1 MIG 3g.40gb (1 with problems)" in shown(
        nodes_table([node("a", replace(devices[2], problems=("Xid 94",)))], START)
    )
    assert "MIG-a-1-2  NVIDIA H100 MIG 3g.40gb" in shown(node_details(divided, START))


def test_what_is_given_of_shared_gpus_is_told() -> None:
    given = {GpuUuid("GPU-0"): GpuShare(750, 60 * 2**30), GpuUuid("GPU-1"): GpuShare(1000, 80 * 2**30)}
    shared = replace(node("a", gpu(0), gpu(1), gpu(2), gpu(3), taken=("GPU-2",)), gpus_shared=given)

    assert "1/4 NVIDIA H100 (2 shared, of which 0.25 free)" in shown(nodes_table([shared], START))
    assert '"gpus_shared": {"GPU-0": {"thousandths": 750, "memory": 64424509440}' in json.dumps(document(shared))
    details = shown(node_details(shared, START))
    assert "0.75 and 60 GiB given in portions" in details
    assert "given to an execution" in details


def test_pools_and_reasons_of_cordons_are_told_where_there_are_any() -> None:
    pooled = replace(labelled(node("a"), rack="7"), pool="h100")
    cordoned = replace(node("b"), cordon=Cordon(since=START, reason="a fan is loud"))

    lines = shown(nodes_table([pooled, cordoned], START)).splitlines()

    assert lines[0].split()[-3:] == ["ADDRESS", "POOL", "REASON"]
    assert lines[1].endswith("10.0.0.1  h100  -")
    assert lines[2].endswith("10.0.0.1  -     a fan is loud")


def test_a_wide_list_of_nodes_has_labels_and_versions() -> None:
    lines = shown(nodes_table([replace(labelled(node("a"), rack="7"), agent_version="1.2")], START, wide=True))

    assert lines.splitlines()[0].split("  ")[-1].strip() == "JOINED"
    assert "rack=7" in lines
    assert "1.2" in lines


def test_in_eighty_columns_each_node_has_one_line() -> None:
    long = replace(
        labelled(node("worker-with-a-long-name-17", gpu(0), gpu(1)), pool="h100-sxm"),
        cordon=Cordon(since=START, reason="the power supply is changed on Monday, ask Ada"),
    )

    lines = shown(nodes_table([long], START), width=80).splitlines()

    assert len(lines) == 2
    assert max(map(len, lines)) <= 80
    assert "the power" in lines[1]


def labelled(of: NodeView, **labels: str) -> NodeView:
    return replace(of, inventory=replace(of.inventory, labels=labels))


def test_one_node_shows_each_gpu_with_its_use_and_problems() -> None:
    text = shown(node_details(node("a", gpu(0), gpu(1, "Xid 79"), taken=("GPU-0",)), START))

    assert text.splitlines()[-3:] == [
        "GPU  UUID   MODEL        MEMORY  NUMA  NVLINK  USE                    PROBLEMS",
        "  0  GPU-0  NVIDIA H100  80 GiB  -     -       given to an execution  -",
        "  1  GPU-1  NVIDIA H100  80 GiB  -     -       free                   Xid 79",
    ]


def test_one_node_shows_what_does_not_work_on_it() -> None:
    seen = node("a")
    offers = (RuntimeOffer(kind=RuntimeKind.DOCKER, problem="permission denied"),)
    ill = replace(
        seen,
        last_seen_at=START - timedelta(seconds=42),
        inventory=replace(seen.inventory, gpu_problem="driver mismatch", runtimes=offers),
    )

    lines = shown(node_details(ill, START)).splitlines()

    assert "last heard  42.0 s ago" in lines
    assert "runtimes    docker: permission denied" in lines
    assert lines[-1] == "GPUs cannot be read: driver mismatch"


def test_one_node_that_is_silent_says_what_can_be_done_about_what_it_runs() -> None:
    silent = replace(node("a"), state=NodeState.LOST, executions=(ExecutionId("j7k2-1-0"),))

    assert "`muster nodes remove NODE` gives it up" in shown(node_details(silent, START))
    for other in (replace(silent, executions=()), replace(silent, state=NodeState.READY)):
        assert "remove" not in shown(node_details(other, START))
