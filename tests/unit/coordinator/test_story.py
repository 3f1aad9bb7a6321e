"""The story of jobs: what the journal and the stored events tell of them, from submit to end."""

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from coordinator.core.causes import EventCause, message_cause
from coordinator.core.events import (
    CordonRequested,
    Event,
    ExecutionsReported,
    NodeDisconnected,
    RemovalRequested,
    StopRequested,
    UncordonRequested,
)
from coordinator.core.notes import Noticed
from coordinator.core.turn.turn import Turn
from coordinator.engine.engine import Engine
from coordinator.store.records.memory import MemoryStore
from muster.domain.errors import IllegalTransitionError
from muster.domain.event import JobEvent, JobEventKind, NodeEventKind
from muster.domain.gangs.plan import Stage
from muster.domain.ids import NodeId, execution_id
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import State, Trigger
from muster.domain.jobs.restart import RestartPolicy
from tests.builders import AT, World, inventory, report, spec
from tests.unit.coordinator.engines import A, J, connection, engine_on, submission, working

NODES = [NodeId(name) for name in "abc"]
ALICE = EventCause("call k3f-1 jobs.submit", "alice")
WHOLE_NODE = 64
THREE = spec(3, cpus=WHOLE_NODE)
STAGES = (Stage.PREPARING, Stage.PREPARED, Stage.ARMED, Stage.RUNNING, Stage.EXITED)


async def connect(engine: Engine) -> None:
    for node in NODES:
        event = connection(engine.streams.open(), node, node)
        await engine.apply(replace(event, inventory=inventory(node)))


def said(stage: Stage, ranks: Iterable[int], attempt: int = 1, **fields: object) -> list[Event]:
    """A message of each node about its rank; the fourth message of its stream."""
    return [
        ExecutionsReported(
            node=NODES[rank],
            reports=(report(execution_id(J, attempt, rank), stage, **fields),),
            cause=message_cause(NODES[rank], 1, 4),
        )
        for rank in ranks
    ]


async def submitted(engine: Engine, job: JobSpec = THREE) -> None:
    await connect(engine)
    await engine.apply(replace(submission(), spec=job, cause=ALICE))


def told(caplog: pytest.LogCaptureFixture, *fields: str) -> list[tuple[str, ...]]:
    """The sentence and some fields of each line of the journal that the engine wrote about jobs."""
    return [
        (line.getMessage(), *(str(getattr(line, name, "")) for name in fields))
        for line in caplog.records
        if line.name == "coordinator.engine.engine" and hasattr(line, "job")
    ]


def kinds(events: Iterable[JobEvent]) -> list[str]:
    return [event.kind for event in events]


async def test_the_journal_tells_a_job_of_three_ranks_from_submit_to_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with working(engine := engine_on(MemoryStore())):
        await submitted(engine)
        for stage in STAGES:
            await engine.apply_all(said(stage, range(3)))

    call, message = "call k3f-1 jobs.submit by alice", "c stream 1 message 4"
    everybody = ("j", "1", "0-2", "a,b,c")
    nobody = ("j", "1", "", "")
    assert told(caplog, "job", "attempt", "rank", "node", "from", "to", "cause") == [
        ("job was submitted", *nobody, "", "queued", call),
        ("executions are placed", *everybody, "queued", "placed", call),
        ("executions are being prepared", *everybody, "placed", "preparing", message),
        ("executions have checked in", *everybody, "preparing", "checked_in", message),
        ("attempt has checked in", *nobody, "prepare", "arm", message),
        ("executions are armed", *everybody, "checked_in", "armed", message),
        ("attempt is released", *nobody, "arm", "run", message),
        ("executions run", *everybody, "armed", "running", message),
        ("attempt has started", *nobody, "released", "started", message),
        ("executions ended well", *everybody, "running", "succeeded", message),
        ("job has ended", *nobody, "", "succeeded", message),
    ]


async def test_the_stored_story_of_a_job_reads_from_submit_to_end() -> None:
    store = MemoryStore()
    async with working(engine := engine_on(store)):
        await submitted(engine)
        for stage in STAGES:
            await engine.apply_all(said(stage, range(3)))

    events = store.events(J, 0, 100)
    assert [(event.kind, event.text.replace("0.0 s", "a moment")) for event in events] == [
        ("submitted", "submitted by alice: 3 executions"),
        ("placed", "3 executions on 3 nodes: a, b, c"),
        ("preparing", "images, directories and ports are being prepared"),
        ("checked_in", "all 3 are prepared, a moment after placement; the last was rank 2 on c"),
        ("released", "all 3 are armed and were told to start; the last was rank 2 on c"),
        ("running", "user code was started in all 3, a moment after placement; the last was rank 2 on c"),
        ("exited", "ranks 0-2 on a,b,c: ended well"),
        ("succeeded", "3 succeeded, a moment after its release"),
    ]
    assert [event.number for event in events] == sorted({event.number for event in events})
    assert {event.by for event in events[:2]} == {"alice"}


async def test_a_failed_rank_is_named_with_its_end_and_with_what_it_means_for_the_others() -> None:
    store = MemoryStore()
    async with working(engine := engine_on(store)):
        await submitted(engine)
        for stage in STAGES[:-1]:
            await engine.apply_all(said(stage, range(3)))
        await engine.apply_all(said(Stage.EXITED, [1], exit=Exit(code=3)))
        await engine.apply_all(said(Stage.STOPPED, [0, 2]))

    told = [(event.kind, event.text, event.nodes) for event in store.events(J, 0, 100)][6:]
    assert told == [
        ("exited", "rank 1 on b: ended with exit code 3", ("b",)),
        ("stopping", "rank 1 on b: ended with exit code 3; the others are stopped", ("b",)),
        ("failed", "1 failed, 2 stopped, 0.0 s after its release: rank 1 on b: ended with exit code 3", ()),
    ]


async def test_a_restart_is_told_with_its_reason() -> None:
    store = MemoryStore()
    async with working(engine := engine_on(store)):
        await submitted(engine, replace(THREE, restarts=RestartPolicy(limit=1)))
        for stage in STAGES[:-1]:
            await engine.apply_all(said(stage, range(3)))
        await engine.apply_all(said(Stage.EXITED, range(3), exit=Exit(code=3)))

    told = [(event.attempt, event.kind, event.text) for event in store.events(J, 0, 100)][7:]
    assert told == [
        (1, "attempt_failed", "rank 0 on a: ended with exit code 3; another attempt follows"),
        (2, "queued", "attempt 2 is queued"),
        (2, "placed", "3 executions on 3 nodes: a, b, c"),
    ]


async def test_whoever_stops_a_job_is_named() -> None:
    store = MemoryStore()
    async with working(engine := engine_on(store)):
        await submitted(engine)
        await engine.apply(StopRequested(job=J, cause=EventCause("call k3f-2 jobs.stop", "bob")))

    [stopping] = [event for event in store.events(J, 0, 100) if event.kind is JobEventKind.STOPPING]
    assert (stopping.text, stopping.by, stopping.cause) == (
        "bob asked for it to be stopped",
        "bob",
        "call k3f-2 jobs.stop",
    )


async def test_that_there_is_no_room_is_told_once_in_each_attempt(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    store = MemoryStore()
    async with working(engine := engine_on(store)):
        await engine.apply(replace(submission(), spec=THREE, cause=ALICE))
        await connect(engine)

    assert kinds(store.events(J, 0, 100)) == ["submitted", "no_room", "placed"]
    offers = [line for line in told(caplog, "offered", "cause") if line[0].startswith("job ")][1:]
    assert offers[0] == ("job does not fit", "all", "call k3f-1 jobs.submit by alice")
    assert offers[-1][:2] == ("job fits", "all")


async def test_the_journal_leaves_out_what_the_scheduler_looks_at_unless_it_is_asked_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with working(engine := engine_on(MemoryStore())):
        await engine.apply(submission())

    assert [line[0] for line in told(caplog)] == ["job was submitted"]


async def test_the_journal_tells_the_life_of_a_node_with_its_causes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    operator = EventCause("call k3f-2 nodes.cordon", "bob")
    async with working(engine := engine_on(MemoryStore())):
        first, second = engine.streams.open(), engine.streams.open()
        await engine.apply(replace(connection(first), cause=message_cause(A, 1, 1)))
        await engine.apply(CordonRequested(node=A, reason="new disk", cause=operator))
        await engine.apply(CordonRequested(node=A, reason="and a new fan", cause=operator))
        await engine.apply(UncordonRequested(node=A, cause=operator))
        await engine.apply(NodeDisconnected(node=A, session=first.number, cause=EventCause("a stream 1 ended")))
        await engine.apply(replace(connection(second), cause=message_cause(A, 2, 1)))
        await engine.apply(NodeDisconnected(node=A, session=second.number))
        await engine.apply(RemovalRequested(node=A))

    lines = [line for line in caplog.records if hasattr(line, "node") and not hasattr(line, "job")]
    assert [
        tuple(str(getattr(line, name, "")) for name in ("msg", "node", "to", "why", "cause")) for line in lines
    ] == [
        ("node has joined", "a", "joined", "", "a stream 1 message 1"),
        ("node is cordoned", "a", "cordoned", "new disk", "call k3f-2 nodes.cordon by bob"),
        ("nothing runs on the node any more", "a", "drained", "", "call k3f-2 nodes.cordon by bob"),
        ("node takes jobs again", "a", "uncordoned", "", "call k3f-2 nodes.cordon by bob"),
        ("node is unreachable", "a", "unreachable", "its stream ended", "a stream 1 ended"),
        ("node is back", "a", "back", "", "a stream 2 message 1"),
        ("node is unreachable", "a", "unreachable", "its stream ended", ""),
        ("node was removed", "a", "removed", "", ""),
    ]


def test_a_node_that_is_silent_is_noticed_once_and_again_when_it_is_lost() -> None:
    w = World(("a", 0), ("b", 0))
    w.advance(100)

    noticed = [note.event for note in w.notes if isinstance(note, Noticed) and note.event.subject == "node/a"]
    assert [event.kind for event in noticed] == [
        NodeEventKind.JOINED,
        NodeEventKind.UNREACHABLE,
        NodeEventKind.LOST,
    ]
    assert noticed[1].text == "it has been silent for 30 s"
    assert noticed[1].id == f"node/a/unreachable/{int((AT.timestamp() + 30) * 1_000_000)}"


def test_the_ends_of_a_large_gang_are_stored_up_to_a_limit() -> None:
    w = World(("a", 0))
    job = w.running(spec(200, cpus=0.1))
    for rank in range(200):
        w.tell(job, rank, Stage.EXITED)

    exits = [event for event in w.store.events(job, 0, 1000) if event.kind is JobEventKind.EXITED]
    assert [event.rank for event in exits] == list(range(64))
    assert w.store.events(job, 0, 1000)[-1].text.startswith("200 succeeded")


def test_events_of_old_attempts_go_but_those_of_the_first_stay() -> None:
    w = World(("a", 0))
    job = w.submit(spec(1, restarts=RestartPolicy(limit=1000, backoff=timedelta())))
    for _ in range(105):
        w.tell(job, 0, Stage.EXITED, exit=Exit(code=1))

    numbers = sorted({event.attempt for event in w.store.events(job, 0, 10_000)})
    assert numbers == [1, *range(7, 107)]


def test_the_story_of_a_deleted_job_is_gone() -> None:
    w = World(("a", 0))
    job = w.running(spec(1))
    w.tell(job, 0, Stage.EXITED)
    w.delete(job)

    assert w.store.events(job, 0, 100) == ()


def test_an_impossible_move_is_refused_with_the_last_moves_of_its_execution() -> None:
    w = World(("a", 0))
    job = w.submit(spec(1))
    turn = Turn(w.cluster, w.now)
    turn.notes.follow(message_cause("a", 1, 2))
    preparing = turn.move(w.rank(job, 0), Trigger.PREPARING)

    with pytest.raises(IllegalTransitionError) as error:
        turn.move(preparing, Trigger.STARTED)

    assert [move.split(" ")[0] for move in error.value.moves] == [State.QUEUED, State.PLACED, State.PREPARING]
    assert error.value.moves[-1].endswith("(a stream 1 message 2)")
    assert "last moves: queued at 2026-11-21T09:00:00" in str(error.value)
