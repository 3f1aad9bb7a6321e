"""The stories of nodes and of the fleet: what is stored of them, for how long, and that jobs add nothing to them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from coordinator.core.causes import EventCause
from coordinator.core.events import (
    CordonRequested,
    ExecutionsReported,
    FleetChanged,
    NodeLabelled,
    ProjectAdded,
    ProjectChanged,
    ProjectRemoved,
    RemovalRequested,
    UncordonRequested,
)
from coordinator.core.notes import Noticed
from coordinator.engine.engine import Engine
from coordinator.store.records.memory import MemoryStore
from coordinator.story.changes import FLEET_EVENTS_KEPT, NODE_EVENTS_KEPT
from muster.domain.event import (
    FLEET_SUBJECT,
    FleetEvent,
    FleetEventKind,
    JobEvent,
    NodeEvent,
    NodeEventKind,
    node_subject,
)
from muster.domain.fleet.access import Permissions
from muster.domain.fleet.node import RuntimeOffer
from muster.domain.gangs.plan import Stage
from muster.domain.ids import NodeId, execution_id
from muster.domain.jobs.job import JobSpec, RuntimeKind
from tests.builders import World, gpu, gpus, inventory, report, spec
from tests.unit.coordinator.engines import A, connection, engine_on, working

BOB = EventCause("call k3f-2 nodes.cordon", "bob")
NODES = (A, NodeId("b"))
XID = "XID 79: the GPU has fallen off the bus"


def story(w: World, node: str = "a") -> list[NodeEvent]:
    return list(w.store.node_events(NodeId(node), 0, 10_000))


def told(w: World, node: str = "a") -> Sequence[tuple[str, str]]:
    """Kind and text of what was stored of a node since it joined."""
    return [(event.kind, event.text) for event in story(w, node)][1:]


def fleet_story(w: World) -> list[FleetEvent]:
    return list(w.store.fleet_events(0, 10_000))


def test_the_story_of_a_node_is_stored_with_its_causes() -> None:
    w = World(("a", 0))
    w.turn(CordonRequested(node=A, reason="new disk", cause=BOB))
    w.turn(UncordonRequested(node=A, cause=BOB))
    w.disconnect("a")
    w.connect("a")
    w.advance(100)

    assert [(event.kind, event.text, event.by) for event in story(w)] == [
        ("joined", "", ""),
        ("cordoned", "new disk", "bob"),
        ("drained", "", "bob"),
        ("uncordoned", "", "bob"),
        ("unreachable", "its stream ended", ""),
        ("back", "", ""),
        ("unreachable", "it has been silent for 30 s", ""),
        ("lost", "", ""),
    ]
    assert story(w)[1].cause == "call k3f-2 nodes.cordon"
    assert story(w)[-1].cause == "deadline LeaseDue of a"


def test_what_happens_to_a_node_twice_in_one_turn_is_told_twice() -> None:
    w = World(("a", 0))
    w.turn(CordonRequested(node=A), UncordonRequested(node=A), CordonRequested(node=A))

    assert [kind for kind, _ in told(w)] == ["cordoned", "uncordoned", "cordoned", "drained"]
    assert len({event.at for event in story(w)[1:]}) == 4


def test_a_cordoned_node_is_drained_once_nothing_runs_there_also_after_a_restart_of_the_coordinator() -> None:
    w = World(("a", 0))
    jobs = [w.running(spec(1)) for _ in range(2)]
    w.turn(CordonRequested(node=A))
    w.tell(jobs[0], 0, Stage.EXITED)
    w.restart()
    w.connect("a", reports=(report(execution_id(jobs[1], 1, 0), Stage.RUNNING),))
    before = told(w)
    w.tell(jobs[1], 0, Stage.EXITED)
    w.restart()
    w.connect("a")

    assert [kind for kind, _ in before] == ["cordoned"]
    assert [kind for kind, _ in told(w)] == ["cordoned", "drained"]


def test_a_drain_that_moves_jobs_is_told_when_it_begins_and_when_nothing_is_left() -> None:
    w = World(("a", 0))
    job = w.running(spec(1))
    w.turn(CordonRequested(node=A, restart_jobs=True, cause=BOB))
    w.tell(job, 0, Stage.STOPPED)

    assert [kind for kind, _ in told(w)] == ["cordoned", "draining", "drained"]


def test_a_node_that_takes_jobs_again_before_it_was_empty_is_not_drained() -> None:
    w = World(("a", 0))
    job = w.running(spec(1))
    w.turn(CordonRequested(node=A))
    w.turn(UncordonRequested(node=A))
    w.tell(job, 0, Stage.EXITED)

    assert [kind for kind, _ in told(w)] == ["cordoned", "uncordoned"]


def test_the_story_of_a_removed_node_stays_and_goes_on_when_it_joins_again() -> None:
    w = World(("a", 0))
    w.disconnect("a")
    w.turn(RemovalRequested(node=A, cause=BOB))
    w.advance(1)
    w.connect("a", inventory("a"))

    assert [kind for kind, _ in told(w)] == ["unreachable", "removed", "joined"]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"cpus": 32}, "CPUs: 64 before, 32 now"),
        ({"gpu_driver": "570.1"}, "GPU driver: none before, 570.1 now"),
        ({"memory": 2**30}, "memory: 512Gi before, 1Gi now"),
        ({"gpus": gpus("a", 1)}, "GPUs: 2 before, 1 now"),
        ({"gpus": (*gpus("a", 1), gpu("b", 1))}, "other GPUs"),
        ({"labels": {"rack": "7"}}, "label rack: none before, 7 now"),
        (
            {"runtimes": (RuntimeOffer(kind=RuntimeKind.PROCESS, problem="no cgroups"),)},
            "runtime docker: works before, none now; runtime process: works before, does not work (no cgroups) now",
        ),
    ],
)
def test_other_hardware_software_or_labels_are_told_as_before_and_now(fields: dict[str, object], text: str) -> None:
    w = World(("a", 2))
    w.change_inventory("a", **fields)

    assert told(w) == [("inventory_changed", text)]


def test_an_agent_that_comes_back_with_other_hardware_is_told() -> None:
    w = World(("a", 1))
    w.disconnect("a")
    w.connect("a", inventory("a", 1, cpus=8))

    assert told(w)[1:] == [("back", ""), ("inventory_changed", "CPUs: 64 before, 8 now")]


def test_labels_that_an_operator_gives_are_told_with_the_account() -> None:
    w = World(("a", 0))
    w.turn(NodeLabelled(node=A, labels={"rack": "7"}, cause=BOB))

    assert [(event.text, event.by) for event in story(w)[1:]] == [("label rack: none before, 7 now", "bob")]


def test_what_is_free_or_in_use_is_no_news() -> None:
    w = World(("a", 1))
    w.change_inventory("a", disk_free=7, disk_total=9, addresses=("10.1.1.1",))

    assert told(w) == []


def test_a_gpu_with_a_problem_is_told_once_and_again_when_it_has_none() -> None:
    w = World(("a", 2))
    ill = (gpu("a", 0), replace(gpu("a", 1), problems=(XID,)))
    for having in (ill, ill, gpus("a", 2)):
        w.change_inventory("a", gpus=having)

    assert told(w) == [("gpu_fault", f"GPU 1: {XID}"), ("gpu_back", "GPU 1")]


def test_a_node_that_joins_with_a_bad_gpu_is_told() -> None:
    w = World()
    w.connect("a", inventory("a", gpus=(replace(gpu("a", 0), problems=(XID,)),)))

    assert told(w) == [("gpu_fault", f"GPU 0: {XID}")]


def test_projects_are_told_in_the_story_of_the_fleet() -> None:
    w, root = World(), EventCause("call k3f-3 projects.add", "root")
    for event in (
        ProjectAdded(name="red", cause=root),
        ProjectAdded(name="red", cause=root),
        ProjectChanged(name="red", permissions=Permissions(any_user=True), cause=root),
        ProjectChanged(name="red", permissions=Permissions(any_user=True), cause=root),
        ProjectRemoved(name="red", cause=root),
        FleetChanged(kind=FleetEventKind.COORDINATOR_STARTED, text="version 1"),
    ):
        w.turn(event)

    assert [(event.kind, event.project, event.text, event.by) for event in fleet_story(w)] == [
        ("project_added", "red", "", "root"),
        ("project_changed", "red", "", "root"),
        ("project_removed", "red", "", "root"),
        ("coordinator_started", "", "version 1", ""),
    ]


def test_of_each_story_the_newest_events_are_kept() -> None:
    w = World(("a", 0), ("b", 0))
    for number in range(NODE_EVENTS_KEPT):
        w.advance(1)
        w.turn(NodeLabelled(node=A, labels={"number": str(number)}))
    for number in range(FLEET_EVENTS_KEPT + 1):
        w.turn(ProjectAdded(name=f"p{number}"))

    assert len(story(w)) == NODE_EVENTS_KEPT
    assert story(w)[0].kind is NodeEventKind.INVENTORY_CHANGED
    assert [event.kind for event in story(w, "b")] == [
        NodeEventKind.JOINED,
        NodeEventKind.UNREACHABLE,
        NodeEventKind.LOST,
    ]
    assert [fleet_story(w)[place].project for place in (0, -1)] == ["p1", f"p{FLEET_EVENTS_KEPT}"]


@pytest.mark.parametrize("size", [10, 4000])
def test_a_gang_of_any_size_tells_nothing_of_nodes_and_fleet_and_as_many_events_of_its_own(size: int) -> None:
    w = World(("a", 0), ("b", 0))
    notices = [note for note in w.notes if isinstance(note, Noticed)]
    job = w.submit(thin(size))
    for stage in (Stage.PREPARING, Stage.PREPARED, Stage.ARMED, Stage.RUNNING, Stage.EXITED):
        members = list(w.cluster.gangs.members(w.cluster.jobs[job].attempt_id))
        said = {node: tuple(report(each.id, stage) for each in members if each.node == node) for node in NODES}
        assert all(said.values()), "the gang is not on both nodes"
        w.turn(*(ExecutionsReported(node=node, reports=reports) for node, reports in said.items()))

    assert [note for note in w.notes if isinstance(note, Noticed)] == notices
    assert ([len(story(w, node)) for node in "ab"], len(fleet_story(w))) == ([1, 1], 0)
    assert kinds(w.store.events(job, 0, 1_000)) == [
        *("submitted", "placed", "preparing", "checked_in", "released", "running", "exited", "succeeded")
    ]


def thin(size: int) -> JobSpec:
    """A job of so many executions that needs both nodes."""
    return spec(size, cpus=128 / size)


def kinds(events: tuple[JobEvent, ...]) -> list[str]:
    return [event.kind for event in events]


async def test_who_follows_a_node_or_the_fleet_is_woken_once_its_story_is_stored() -> None:
    store = MemoryStore()
    async with working(engine := engine_on(store)):
        await join(engine)
        with engine.signals.listen(node_subject(A), FLEET_SUBJECT) as listener:
            await engine.apply(CordonRequested(node=A))
            woken = [await listener.wait()]
            cordoned = store.node_events(A, 0, 9)[1]
            await engine.apply(ProjectAdded(name="new"))
            woken.append(await listener.wait())

    assert woken == [{node_subject(A)}, {FLEET_SUBJECT}]
    assert cordoned.kind is NodeEventKind.CORDONED


async def test_the_journal_tells_of_the_fleet_in_the_words_of_its_events(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with working(engine := engine_on(MemoryStore())):
        await engine.apply(ProjectAdded(name="new", cause=BOB))

    [line] = [line for line in caplog.records if hasattr(line, "project")]
    assert tuple(getattr(line, name) for name in ("msg", "project", "to")) == (
        "project was added",
        "new",
        "project_added",
    )
    assert not hasattr(line, "node")


async def join(engine: Engine) -> None:
    stream = engine.streams.open()
    await engine.apply(connection(stream))


@pytest.mark.parametrize("kind", [*NodeEventKind, *FleetEventKind])
def test_every_kind_has_words_of_its_own(kind: NodeEventKind | FleetEventKind) -> None:
    assert [each for each in (*NodeEventKind, *FleetEventKind) if each.words == kind.words] == [kind]
