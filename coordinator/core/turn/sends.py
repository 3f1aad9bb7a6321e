"""What nodes are told at the end of a turn."""

from collections.abc import Iterator

from coordinator.core.causes import UNKNOWN_CAUSE, EventCause
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.effects import CloseSession, SendPlan
from coordinator.core.notes import TurnNotes
from coordinator.core.records import Execution
from coordinator.core.turn import plans
from muster.domain.ids import ExecutionId, NodeId
from muster.domain.jobs.lifecycle import TERMINAL


class Sends:
    """Plans that are to be sent and streams that are to be closed."""

    def __init__(self, cluster: Cluster, notes: TurnNotes) -> None:
        """`notes`: where the cause of each line is found."""
        self._cluster = cluster
        self._notes = notes
        self._lines: dict[NodeId, dict[ExecutionId, EventCause]] = {}
        self._whole: dict[NodeId, EventCause] = {}
        self._closed: dict[int, NodeId] = {}

    def line(self, execution: Execution) -> None:
        """Have the plan line of an execution sent to its node."""
        if execution.node is not None:
            self._lines.setdefault(execution.node, {})[execution.id] = self._notes.cause

    def whole(self, node: NodeId) -> None:
        """Have the whole plan of a node sent."""
        self._whole[node] = self._notes.cause

    def dismissals(self, node: NodeId) -> None:
        """Have a node told now what it may clear away, unless it was told by the way."""
        presence = self._cluster.presence.get(node)
        if presence is not None and presence.dismissed:
            self._lines.setdefault(node, {})

    def close(self, node: NodeId, session: int) -> None:
        """Have a stream closed."""
        self._closed[session] = node

    def forget(self, node: NodeId) -> None:
        """Tell a node nothing: it is forgotten."""
        self._lines.pop(node, None)
        self._whole.pop(node, None)

    @property
    def may_wait(self) -> bool:
        """Whether nobody is to do anything but clear away what has ended anyway."""
        told = (execution for lines in self._lines.values() for execution in lines)
        return not (self._whole or self._closed) and all(self._is_over(execution) for execution in told)

    def take_closed(self) -> Iterator[CloseSession]:
        """The streams to close, told once."""
        closed, self._closed = self._closed, {}
        return (CloseSession(node=node, session=session) for session, node in closed.items())

    def take_plans(self) -> Iterator[SendPlan]:
        """The plans to send, told once: each raises the revision of its node."""
        whole, self._whole = self._whole, {}
        lines, self._lines = self._lines, {}
        facts = plans.GangFacts(self._cluster)
        for node in {**whole, **dict.fromkeys(lines)}:
            presence = self._cluster.presence.get(node)
            if presence is None or presence.session is None:
                continue
            dismissed = presence.take_dismissed()
            if node in whole:
                plan = plans.whole(self._cluster, node, facts, whole[node])
            else:
                changed = {**lines[node], **dict.fromkeys(dismissed, UNKNOWN_CAUSE)}
                plan = plans.change(self._cluster, node, changed, facts)
            yield SendPlan(node=node, session=presence.session, plan=plan)

    def _is_over(self, execution: ExecutionId) -> bool:
        there = self._cluster.executions.get(execution)
        return there is None or there.state in TERMINAL
