"""What an agent sent on an older stream comes after its newer one has begun: it must not undo what is true by now."""

from dataclasses import replace

from coordinator.core.answers import Noted, Refused
from coordinator.core.events import ExecutionsReported, HeartbeatReceived, InventoryChanged, NodeConnected
from muster.domain.gangs.plan import Stage
from muster.domain.ids import ExecutionId, NodeId, execution_id
from muster.domain.jobs.lifecycle import State
from tests.builders import World, inventory, report, spec

A = NodeId("a")


def hello(opened: int, *running: ExecutionId) -> NodeConnected:
    return NodeConnected(
        node=A,
        session=1000 + opened,
        identity="identity of a",
        version="0.1",
        address="address of a",
        inventory=inventory("a", 1),
        reports=tuple(report(execution, Stage.RUNNING) for execution in running),
        opened=opened,
    )


def session(w: World) -> int:
    number = w.cluster.presence[A].session
    assert number is not None
    return number


def test_reports_of_a_former_stream_do_not_count() -> None:
    """The agent was restarted and prepares again, with other ports than those that it reported before."""
    w = World(("a", 1))
    job = w.submit(spec(1, gpus=1))
    w.tell(job, 0, Stage.PREPARING)
    former = session(w)
    w.connect("a")

    late = report(execution_id(job, 1, 0), Stage.PREPARED)
    w.turn(ExecutionsReported(node=A, session=former, reports=(late,)))

    assert w.states(job) == [State.PREPARING]
    w.turn(ExecutionsReported(node=A, session=session(w), reports=(late,)))
    assert w.states(job) == [State.CHECKED_IN]


def test_an_inventory_of_a_former_stream_does_not_count() -> None:
    w = World(("a", 1))
    former = session(w)
    w.connect("a", inventory("a", 2))

    w.turn(InventoryChanged(node=A, session=former, inventory=inventory("a", 1)))

    assert w.cluster.nodes[A].inventory == inventory("a", 2)


def test_a_heartbeat_of_a_former_stream_renews_no_lease() -> None:
    w = World(("a", 1))
    former = session(w)
    w.connect("a")
    began = w.now
    w.advance(5)

    w.turn(HeartbeatReceived(node=A, session=former, plan_revision=1))

    assert w.cluster.presence[A].last_seen_at == began


def test_a_hello_that_a_newer_one_overtook_is_refused() -> None:
    """Taken, it would deny an execution that runs by now: its GPU would be given away under it."""
    w = World(("a", 1))
    w.turn(hello(2))
    job = w.running(spec(1, gpus=1))

    answer = w.turn(hello(1))[0]

    assert isinstance(answer, Refused)
    assert "newer stream" in answer.message
    assert w.states(job) == [State.RUNNING]
    assert session(w) == 1002


def test_an_agent_whose_clock_was_put_back_is_taken_after_a_lease() -> None:
    w = World(("a", 1))
    w.turn(hello(2))
    w.advance(31)

    assert w.turn(hello(1)) == [Noted()]
    assert session(w) == 1001


def test_a_newer_hello_takes_the_place_of_an_open_stream() -> None:
    w = World(("a", 1))
    w.turn(hello(1))
    job = w.running(spec(1, gpus=1))

    assert w.turn(replace(hello(2, execution_id(job, 1, 0)), session=7)) == [Noted()]
    assert session(w) == 7
    assert w.states(job) == [State.RUNNING]


def test_a_heartbeat_with_a_revision_that_was_never_given_brings_the_whole_plan() -> None:
    """The agent has a plan of a coordinator before this one, and missed the first plan of this one."""
    w = World(("a", 1))
    w.restart()
    w.undelivered.add(A)
    w.connect("a")
    w.undelivered.clear()

    w.heartbeat("a", revision=57)

    assert w.last_plan("a").base == 0
    assert w.last_plan("a").revision == 2
