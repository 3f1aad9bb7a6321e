"""Which events become one turn, and who is answered when."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from coordinator.core.answers import Answer, Noted
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.events import Event, HeartbeatReceived, TimePassed
from coordinator.core.scheduling.order import within_project
from coordinator.core.step import finish
from coordinator.core.turn.batching import OpenTurn
from coordinator.core.turn.turn import Turn
from muster.domain.ids import NodeId
from tests.builders import World, spec

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Asked:
    """Something that waits, by name."""

    name: str
    events: tuple[Event, ...] = ()
    waited_for: bool = False


@dataclass
class Core:
    """A core that notes what it is asked, and takes each event for news of how far an execution is."""

    stepped: list[Event] = field(default_factory=list)

    def __call__(self, turn: Turn, event: Event) -> Answer:
        self.stepped.append(event)
        for execution in turn.cluster.executions.values():
            turn.put(replace(execution, detail=f"event {len(self.stepped)}"))
        return Noted()


def beat(number: int) -> HeartbeatReceived:
    return HeartbeatReceived(node=NodeId("a"), session=1, plan_revision=number)


def running() -> Cluster:
    """A cluster in which an execution gets on."""
    world = World(("a", 1))
    world.submit(spec(1))
    return world.cluster


def opened(core: Core, cluster: Cluster | None = None) -> OpenTurn[Asked]:
    return OpenTurn(cluster or Cluster(within_project), NOW, 10.0, core, finish)


def test_a_turn_stays_open_while_nobody_waits() -> None:
    turn = opened(Core(), running())
    turn.take([Asked("a", (beat(1),))], NOW)
    assert turn.stays_open(9.999)
    assert not turn.stays_open(10.0)


def test_whoever_waits_closes_it() -> None:
    for asked in (Asked("event", (beat(1),), waited_for=True), Asked("question", waited_for=True)):
        turn = opened(Core(), running())
        turn.take([Asked("progress", (beat(1),)), asked], NOW)
        assert not turn.stays_open(0.0)
        assert turn.waiting == [asked]


def test_events_are_answered_before_questions_and_each_in_its_order() -> None:
    """A question sees all that came of the events beside it."""
    turn = opened(Core())
    question, first, unasked, second = (
        Asked("question", waited_for=True),
        Asked("first", (beat(1), beat(2)), waited_for=True),
        Asked("unasked", (beat(3),)),
        Asked("second", (beat(4),), waited_for=True),
    )
    turn.take([question, first, unasked, second], NOW)
    assert list(turn.answered()) == [(first, [Noted(), Noted()]), (second, [Noted()]), (question, [])]


def test_later_events_join_a_turn_that_is_open() -> None:
    core = Core()
    turn = opened(core)
    turn.take([Asked("a", (beat(1),))], NOW)
    turn.take([Asked("b", (beat(2),), waited_for=True)], NOW + timedelta(seconds=1))
    assert core.stepped == [beat(1), beat(2)]
    assert turn.turn.now == NOW + timedelta(seconds=1)


def test_a_heartbeat_that_waits_counts_before_its_sender_is_judged() -> None:
    core, cluster = Core(), Cluster(within_project)
    cluster.deadlines.watch_lease(NodeId("a"), NOW)
    turn = opened(core, cluster)
    turn.take([Asked("a", (beat(1),))], NOW)
    assert core.stepped == [beat(1), TimePassed()]


def test_a_deadline_is_looked_at_though_nothing_came() -> None:
    core, cluster = Core(), Cluster(within_project)
    cluster.deadlines.watch_lease(NodeId("a"), NOW + timedelta(seconds=1))
    turn = opened(core, cluster)
    turn.take([], NOW)
    assert core.stepped == []
    turn.take([], NOW + timedelta(seconds=1))
    assert core.stepped == [TimePassed()]


def test_nothing_is_done_where_nothing_came() -> None:
    core = Core()
    turn = opened(core)
    turn.take([], NOW)
    assert core.stepped == []
