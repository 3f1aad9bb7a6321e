"""What the journal of the agent says of each action as it begins, in the words and fields of the coordinator's."""

from collections.abc import Mapping

from agent.core.local import MOVES, LocalExecution, LocalState

BEGINNINGS: Mapping[LocalState, str] = {
    LocalState.PREPARING: "execution is being prepared",
    LocalState.ARMING: "execution is being armed",
    LocalState.STARTING: "execution is being started",
    LocalState.HALTING: "execution is being stopped before its start",
    LocalState.TERMINATING: "execution is being stopped",
    LocalState.REMOVING: "execution is being cleared away",
}
"""States in which an action is under way."""


def fields_of(local: LocalExecution, node: str) -> dict[str, object]:
    """Job, attempt, rank, node, the states before and after, and the cause; what is not known is left out."""
    told: dict[str, object] = {"execution": local.execution}
    assignment = local.wanted.assignment
    if assignment is not None:
        told = {"job": assignment.job, "attempt": assignment.attempt, "rank": assignment.rank}
    before = [came_from for (came_from, _), state in MOVES.items() if state is local.phase]
    if len(before) == 1:
        told |= {"node": node, "from": before[0], "to": local.phase}
    else:
        told |= {"node": node, "to": local.phase}
    cause = local.wanted.cause if local.cut is None else local.cut.message
    return {**told, "cause": cause} if cause else told
