"""What must be true of taints: nothing is placed on a node that has one for longer, and none is forgotten."""

from collections.abc import Iterable

from coordinator.core.records import Change, DropNode, Execution, Node, Put
from muster.domain.ids import NodeId
from muster.domain.jobs.failure import FailureKind
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.placing.taint import Taint
from muster.domain.jobs.placing.toleration import TaintEffect, Toleration, TolerationOperator
from tests.simulation.world import Violation


class TaintTruth:
    """Holds what is committed against what an operator was told."""

    def __init__(self) -> None:
        self.wanted: dict[NodeId, set[Taint]] = {}
        """Taints that an operator was told of, and does not want to be gone."""
        self.moved = 0
        """Executions that ended because of a taint of their node."""
        self._taints: dict[NodeId, frozenset[Taint]] = {}
        self._lasting: dict[NodeId, frozenset[Taint]] = {}

    def committed(self, changes: Iterable[Change]) -> None:
        """Take in what nodes are like."""
        self._lasting = dict(self._taints)
        for change in changes:
            match change:
                case Put(record=Node() as node):
                    now = frozenset(each.taint for each in node.taints)
                    for taint in self.wanted.get(node.name, set()) - now:
                        raise Violation(f"the taint {taint} of {node.name} is forgotten", node.name)
                    self._taints[node.name] = now
                    self._lasting[node.name] = self._lasting.get(node.name, frozenset()) & now
                case DropNode(node=name):
                    self.wanted.pop(name, None)
                    self._taints.pop(name, None)
                    self._lasting.pop(name, None)

    def check_placed(self, execution: Execution, spec: JobSpec) -> None:
        """An execution was placed by these changes."""
        assert execution.node is not None
        for taint in self._lasting.get(execution.node, ()):
            if taint.effect is not TaintEffect.PREFER_NO_SCHEDULE and not _lets(spec.tolerations, taint):
                raise Violation(
                    f"{execution.id} is placed on {execution.node}, which has the taint {taint}",
                    execution.job,
                    execution.node,
                )

    def see_ended(self, execution: Execution) -> None:
        """Count what ended because of a taint."""
        failure = execution.failure
        self.moved += failure is not None and failure.kind is FailureKind.DRAINED and "the taint" in failure.message


def _lets(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of them lets a job be placed beside a taint: for ever, and about key, value and effect."""
    return any(
        each.seconds is None
        and (not each.key or each.key == taint.key)
        and (each.operator is TolerationOperator.EXISTS or each.value == taint.value)
        and (each.effect is None or each.effect is taint.effect)
        for each in tolerations
    )


def cordoned_after(before: frozenset[NodeId], changes: Iterable[Change]) -> frozenset[NodeId]:
    """Nodes that take nothing new, once these changes are stored."""
    cordoned = set(before)
    for change in changes:
        match change:
            case Put(record=Node() as node) if node.cordon is not None:
                cordoned.add(node.name)
            case Put(record=Node(name=name)) | DropNode(node=name):
                cordoned.discard(name)
    return frozenset(cordoned)
