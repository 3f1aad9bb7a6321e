"""`muster events` of jobs, nodes and the fleet against a coordinator that answers from values."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from muster.cli.exit_codes import ExitCode
from muster.domain.event import FleetEvent, FleetEventKind, JobEvent, JobEventKind, NodeEvent, NodeEventKind
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.rpc.v1 import jobs_pb2, nodes_pb2
from tests.integration.canned_coordinator import Broken, Canned, serving
from tests.integration.command_line import Muster
from tests.unit.cli import values
from tests.unit.cli.values import attempt, execution

JOB = values.job(JobPhase.SUCCEEDED, attempt(execution(0, State.SUCCEEDED)), started=1, ended=3)
SUBMITTED = JobEvent(
    job=JobId("j7k2"),
    attempt=1,
    kind=JobEventKind.SUBMITTED,
    at=datetime(2026, 11, 21, 9, tzinfo=UTC),
    text="submitted by ada: 2 executions",
    by="ada",
    cause="call 3f0a-1 jobs.submit",
    number=3,
)
EXITED = replace(
    SUBMITTED,
    kind=JobEventKind.EXITED,
    text="rank 0 on a\x1b[31m: ended well",
    rank=0,
    ranks="0",
    nodes=(NodeId("a"),),
    by="",
    number=7,
)


@pytest.fixture
def muster() -> Iterator[Muster]:
    canned = Canned(jobs=[JOB])
    with serving(canned) as address:
        yield Muster(canned, address)


def test_events_are_listed_oldest_first_and_act_on_no_terminal(muster: Muster) -> None:
    muster.canned.events = [[SUBMITTED, EXITED]]

    head, *rows = muster("events", "ring").stdout.splitlines()

    assert head.split() == ["TIME", "ATTEMPT", "EVENT", "WHAT"]
    assert [row[21:] for row in rows] == [
        "      1  submitted       submitted by ada: 2 executions",
        "      1  exited          rank 0 on a\\x1b[31m: ended well",
    ]


def test_events_as_documents_have_their_ids(muster: Muster) -> None:
    muster.canned.events = [[SUBMITTED, EXITED]]

    documents = json.loads(muster("events", "ring", "-o", "json").stdout)

    assert [(each["id"], each["number"]) for each in documents] == [
        ("job/j7k2/1/submitted", 3),
        ("job/j7k2/1/exited/0", 7),
    ]
    assert documents[1] == {
        "id": "job/j7k2/1/exited/0",
        "job": "j7k2",
        "attempt": 1,
        "kind": "exited",
        "at": "2026-11-21T09:00:00Z",
        "text": "rank 0 on a\x1b[31m: ended well",
        "rank": 0,
        "ranks": "0",
        "nodes": ["a"],
        "by": "",
        "cause": "call 3f0a-1 jobs.submit",
        "number": 7,
    }


@pytest.mark.parametrize(("output", "head"), [("json", ""), ("yaml", "- ")])
def test_a_follower_gets_a_document_a_line(muster: Muster, output: str, head: str) -> None:
    muster.canned.events = [[SUBMITTED, EXITED]]

    followed = muster("events", "-f", "-o", output, "ring")

    assert [json.loads(row.removeprefix(head))["kind"] for row in followed.stdout.splitlines()] == [
        "submitted",
        "exited",
    ]
    assert followed.exit_code == ExitCode.SUCCESS
    assert [asked.follow for asked in muster.canned.asked_for(jobs_pb2.EventsRequest)] == [True]


def test_a_broken_stream_goes_on_after_the_last_event(muster: Muster) -> None:
    muster.canned.events = [[SUBMITTED, Broken.UNAVAILABLE], [EXITED]]

    rows = muster("events", "-f", "ring").stdout.splitlines()[1:]

    assert [row.split()[3] for row in rows] == ["submitted", "exited"]
    asked = [(each.job, each.after) for each in muster.canned.asked_for(jobs_pb2.EventsRequest)]
    assert asked == [("ring", 0), ("j7k2", 3)]


CORDONED = NodeEvent(
    node=NodeId("gpu-a"),
    kind=NodeEventKind.CORDONED,
    at=datetime(2026, 11, 21, 9, tzinfo=UTC),
    text="a fan\x1b[31m is broken",
    by="ada",
    cause="call 3f0a-1 nodes.cordon",
    number=4,
)
BACK = replace(CORDONED, kind=NodeEventKind.BACK, text="", by="", cause="gpu-a stream 2 message 1", number=9)
ADDED = FleetEvent(
    kind=FleetEventKind.PROJECT_ADDED,
    at=datetime(2026, 11, 21, 9, tzinfo=UTC),
    project="vision",
    by="ada",
    cause="call 3f0a-2 projects.add",
    number=5,
)


def test_the_story_of_a_node_is_told_in_the_words_of_its_events(muster: Muster) -> None:
    muster.canned.node_events = [[CORDONED, BACK]]

    head, *rows = muster("events", "--node", "gpu-a").stdout.splitlines()

    assert head.split() == ["TIME", "EVENT", "WHAT"]
    assert [row[21:] for row in rows] == [
        "cordoned             node is cordoned: a fan\\x1b[31m is broken (by ada)",
        "back                 node is back",
    ]
    assert [(asked.node, asked.follow) for asked in muster.canned.asked_for(nodes_pb2.NodeEventsRequest)] == [
        ("gpu-a", False)
    ]


def test_the_story_of_the_fleet_is_given_as_documents(muster: Muster) -> None:
    muster.canned.fleet_events = [[ADDED]]

    assert json.loads(muster("events", "--fleet", "-o", "json").stdout) == [
        {
            "id": f"fleet/project_added/vision/{int(ADDED.at.timestamp()) * 1_000_000}",
            "kind": "project_added",
            "at": "2026-11-21T09:00:00Z",
            "project": "vision",
            "text": "",
            "by": "ada",
            "cause": "call 3f0a-2 projects.add",
            "number": 5,
        }
    ]


def test_a_broken_story_of_a_node_goes_on_after_the_last_event(muster: Muster) -> None:
    muster.canned.node_events = [[CORDONED, Broken.UNAVAILABLE], [BACK]]

    rows = muster("events", "-f", "--node", "gpu-a").stdout.splitlines()[1:]

    assert [row.split()[2] for row in rows] == ["cordoned", "back"]
    assert [asked.after for asked in muster.canned.asked_for(nodes_pb2.NodeEventsRequest)] == [0, 4]


@pytest.mark.parametrize("words", [(), ("ring", "--fleet"), ("--node", "gpu-a", "--fleet")])
def test_one_story_is_asked_for_at_a_time(muster: Muster, words: tuple[str, ...]) -> None:
    refused = muster("events", *words)

    assert refused.exit_code == ExitCode.USAGE
    assert "name one of them" in refused.stderr
    assert muster.canned.asked == []
