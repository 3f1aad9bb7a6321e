"""The command for taints of nodes, against a coordinator that answers from values."""

from datetime import timedelta

import pytest

from muster.domain.fleet.node import Inventory, NodeState, NodeView
from muster.domain.ids import NodeId
from muster.domain.jobs.placing.taint import Taint, TaintName
from muster.domain.jobs.placing.toleration import TaintEffect
from muster.rpc.v1 import nodes_pb2
from muster.wire.nodes import taint_from_wire, taint_name_from_wire
from tests.integration.canned_coordinator import Canned, serving
from tests.integration.command_line import Muster

NODE = NodeView(name=NodeId("a"), state=NodeState.READY, address="10.0.0.1", inventory=Inventory(cpus=8, memory=2**35))


def test_taints_are_given_and_taken_away_in_one_call() -> None:
    canned = Canned(nodes=[NODE])
    words = ("gpu=bad:NoExecute", "slow:PreferNoSchedule", "team-", "fan:NoSchedule-")
    with serving(canned) as address:
        done = Muster(canned, address)("nodes", "taint", "a", *words, "--after", "10m")

    assert done.stdout == "a: gpu=bad:NoExecute, slow:PreferNoSchedule\n", done.output
    [request] = canned.asked_for(nodes_pb2.TaintNodeRequest)
    assert tuple(map(taint_from_wire, request.given)) == (
        Taint(key="gpu", value="bad", effect=TaintEffect.NO_EXECUTE),
        Taint(key="slow", effect=TaintEffect.PREFER_NO_SCHEDULE),
    )
    assert tuple(map(taint_name_from_wire, request.removed)) == (
        TaintName(key="team"),
        TaintName(key="fan", effect=TaintEffect.NO_SCHEDULE),
    )
    assert request.after.ToTimedelta() == timedelta(minutes=10)


def test_a_node_without_taints_says_so() -> None:
    canned = Canned(nodes=[NODE])
    with serving(canned) as address:
        assert Muster(canned, address)("nodes", "taint", "a", "gpu-").stdout == "a: no taints\n"


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("gpu", "'gpu' is neither a taint like gpu=bad:NoSchedule nor one to take away like gpu-"),
        ("gpu:noexecute", "(meant NoExecute?)"),
        (":NoExecute", "':NoExecute' has no key"),
        ("gpu=bad-", "a taint to take away is named by its key, like gpu-"),
    ],
)
def test_a_word_that_is_no_taint_is_refused_with_what_to_write(word: str, said: str) -> None:
    canned = Canned(nodes=[NODE])
    with serving(canned) as address:
        done = Muster(canned, address)("nodes", "taint", "a", word)

    assert done.exit_code == 2
    assert said in done.output
    assert canned.asked_for(nodes_pb2.TaintNodeRequest) == []
