"""The commands about nodes, against a coordinator that answers from values."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from muster.cli.exit_codes import ExitCode
from muster.domain.fleet.node import NodeState, NodeView
from muster.domain.ids import ExecutionId
from muster.rpc.v1 import nodes_pb2
from tests.integration.canned_coordinator import Canned, serving
from tests.integration.command_line import Muster
from tests.unit.cli import values


@pytest.fixture
def muster() -> Iterator[Muster]:
    canned = Canned()
    with serving(canned) as address:
        yield Muster(canned, address)


def test_nodes_are_listed_and_one_is_shown(muster: Muster) -> None:
    muster.canned.nodes = [values.node("a"), values.node("b")]

    assert [row.split()[0] for row in muster("nodes").stdout.splitlines()] == ["NODE", "a", "b"]
    assert "cpus     6.5 of 8 free" in muster("nodes", "b").stdout
    assert muster("nodes", "c").exit_code == ExitCode.UNKNOWN_NAME


def lost_node() -> NodeView:
    executions = tuple(ExecutionId(f"j7k2-1-{rank}") for rank in range(6))
    return replace(values.node("b"), state=NodeState.LOST, executions=executions)


def test_a_node_is_shown_as_json_wherever_that_is_said(muster: Muster) -> None:
    muster.canned.nodes = [values.node("a"), values.node("show")]

    for words in (("nodes", "a", "-o", "json"), ("nodes", "-o", "json", "a"), ("nodes", "show", "a", "-o", "json")):
        assert json.loads(muster(*words).stdout)["name"] == "a"
    assert json.loads(muster("nodes", "show", "show", "-o", "json").stdout)["name"] == "show"


def test_a_node_is_removed_after_a_question_that_says_what_follows(muster: Muster) -> None:
    muster.canned.nodes = [values.node("a"), lost_node()]
    kept = muster("nodes", "remove", "b", stdin="n\n")
    assert (kept.exit_code, [node.name for node in muster.canned.nodes]) == (1, ["a", "b"])
    assert kept.stderr.startswith(
        "6 executions on b (j7k2-1-0, j7k2-1-1, j7k2-1-2, j7k2-1-3, j7k2-1-4, …) will count as ended, and jobs with "
        "restarts begin anew elsewhere. If user code still runs there, it runs twice. Remove it? [y/N]:"
    )

    assert muster("nodes", "remove", "b", stdin="y\n").stdout.endswith("b removed\n")
    assert [node.name for node in muster.canned.nodes] == ["a"]


def test_a_node_can_be_removed_by_a_program(muster: Muster) -> None:
    muster.canned.nodes = [lost_node()]

    removed = json.loads(muster("nodes", "remove", "b", "--yes", "-o", "json").stdout)
    assert (removed["name"], len(removed["executions"])) == ("b", 6)


def test_a_node_that_is_connected_is_not_removed_and_nobody_is_asked(muster: Muster) -> None:
    muster.canned.nodes = [values.node("a")]

    refused = muster("nodes", "remove", "a")
    assert refused.stderr == "error: node a is connected; stop its agent first (what runs there would run on)\n"
    assert (refused.exit_code, len(muster.canned.nodes)) == (ExitCode.REFUSED, 1)


def test_nodes_are_cordoned_with_a_reason_and_take_jobs_again(muster: Muster) -> None:
    muster.canned.nodes = [values.node("a"), replace(lost_node(), state=NodeState.READY)]

    told = muster("nodes", "cordon", "a", "b", "--reason", "new memory").stdout
    assert told.splitlines() == [
        "a is cordoned; nothing runs there",
        "b is cordoned; 6 executions run there (j7k2-1-0, j7k2-1-1, j7k2-1-2, j7k2-1-3, j7k2-1-4, …)",
    ]
    assert [row.split()[1:3] for row in muster("nodes").stdout.splitlines()[1:]] == [["ready,", "cordoned"]] * 2
    assert "ago: new memory" in muster("nodes", "a").stdout
    assert json.loads(muster("nodes", "a", "-o", "json").stdout)["cordon"]["reason"] == "new memory"

    assert muster("nodes", "uncordon", "a").stdout == "a takes jobs\n"
    assert muster.canned.nodes[0].cordon is None


def test_a_drained_node_is_waited_for(muster: Muster) -> None:
    muster.canned.nodes = [replace(lost_node(), state=NodeState.READY)]

    drained = muster("nodes", "drain", "b", "--restart", "--reason", "new memory")

    assert (drained.exit_code, drained.stdout) == (ExitCode.SUCCESS, "b is drained\n")
    assert drained.stderr.startswith("b: 6 executions run there (j7k2-1-0")
    cordon = next(each for each in muster.canned.asked if isinstance(each, nodes_pb2.CordonNodeRequest))
    assert (cordon.node, cordon.reason, cordon.restart_jobs) == ("b", "new memory", True)


def test_nothing_is_cordoned_where_one_of_the_nodes_is_not_known(muster: Muster) -> None:
    muster.canned.nodes = [values.node("a")]

    assert muster("nodes", "cordon", "a", "nowhere").exit_code == ExitCode.UNKNOWN_NAME
    assert muster.canned.nodes[0].cordon is None


def test_a_wait_for_a_drain_needs_a_time_that_is_one(muster: Muster) -> None:
    muster.canned.nodes = [values.node("a")]

    refused = muster("nodes", "drain", "a", "--timeout", "soon")
    assert refused.exit_code == ExitCode.USAGE
    assert muster.canned.nodes[0].cordon is None
