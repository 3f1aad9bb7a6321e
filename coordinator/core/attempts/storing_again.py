"""Outputs that are stored again because somebody asks for that, also of executions that are long over."""

from coordinator.core.answers import Answer, Noted
from coordinator.core.attempts import storing
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.data_events import OutputsRetried
from coordinator.core.records import Execution
from coordinator.core.turn.turn import Turn
from muster.domain.data.outputs import RETRIED_STAGES, OutputsStage
from muster.domain.fleet.features import STORE_AGAIN
from muster.domain.jobs.lifecycle import TERMINAL


def take(turn: Turn, event: OutputsRetried) -> Answer:
    """Have those outputs stored again that can be; where that goes on already, nothing changes."""
    for execution in list(turn.cluster.gangs.members(event.attempt)):
        if execution.rank in event.ranks and why_not(turn.cluster, execution) is None:
            storing.again(turn, execution)
    return Noted()


def why_not(cluster: Cluster, execution: Execution) -> str | None:
    """Why outputs of an execution are not stored again; None: they can be, or they already are."""
    outputs = execution.outputs
    if outputs is None or outputs.stage not in RETRIED_STAGES:
        return _NOTHING_TO_DO[None if outputs is None else outputs.stage]
    if execution.state not in TERMINAL:
        return "its user code has not ended"
    node = None if execution.node is None else cluster.nodes.get(execution.node)
    if node is None:
        return f"its node {execution.node} was removed"
    if STORE_AGAIN not in node.features:
        return f"the agent of its node {node.name} is too old for that; upgrade it (muster nodes upgrade)"
    return None


_NOTHING_TO_DO = {
    None: "it has left nothing",
    OutputsStage.LIVE: "its user code has not ended",
    OutputsStage.STORING: "its outputs are on their way",
    OutputsStage.STORED: "its outputs are in the depot",
    OutputsStage.UNWANTED: "its job does not want them (outputs.on)",
    OutputsStage.EXPIRED: "its outputs were kept for long enough (outputs.keep)",
}
