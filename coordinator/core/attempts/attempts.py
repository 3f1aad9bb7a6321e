"""How an attempt goes on and how it ends: prepare, arm, run; the first failure ends it for all."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from coordinator.core.attempts.starts import start_again
from coordinator.core.cluster.deadlines import AttemptKey
from coordinator.core.records import Attempt, Execution
from coordinator.core.turn.turn import Turn
from muster.domain.fleet.node import NodeState
from muster.domain.gangs.plan import Goal
from muster.domain.ids import ExecutionId, NodeId
from muster.domain.jobs.failure import Failure, FailureKind
from muster.domain.jobs.lifecycle import PROGRESS, TERMINAL, State, SuccessRule, Trigger


def reach(turn: Turn, execution: Execution, state: State) -> Execution:
    """Bring an execution forward to a state, through every state on the way; one that is there stays as it is.

    Reports tell the newest truth, so a fast execution may be reported as running before its arming was.
    """
    if execution.state not in PROGRESS:
        return execution
    steps = PROGRESS[PROGRESS.index(execution.state) + 1 : PROGRESS.index(state) + 1]
    for step in steps:
        execution = turn.move(execution, _FORWARD[step])
    return execution


def go_on(turn: Turn, key: AttemptKey) -> None:
    """Give the next order once every execution has done the one before."""
    if turn.cluster.attempts[key].goal is Goal.PREPARE and _all_reached(turn, key, State.CHECKED_IN):
        _order(turn, replace(turn.cluster.attempts[key], goal=Goal.ARM, checked_in_at=turn.now))
    if turn.cluster.attempts[key].goal is Goal.ARM and _all_reached(turn, key, State.ARMED):
        _order(turn, replace(turn.cluster.attempts[key], goal=Goal.RUN, released_at=turn.now))
        turn.cluster.deadlines.watch_attempt(turn.cluster.attempts[key], turn.cluster.jobs[key[0]])
    attempt = turn.cluster.attempts[key]
    if attempt.goal is Goal.RUN and attempt.started_at is None and _all_ran(turn, key):
        turn.put(replace(attempt, started_at=turn.now))


def fail(turn: Turn, execution: Execution, failure: Failure) -> None:
    """An execution failed and nothing of it runs: it ends the attempt, and if it is the first it is to blame."""
    if execution.state is State.STOPPING:
        confirm_stop(turn, execution if execution.failure else replace(execution, failure=_at(execution, failure)))
    elif execution.state not in TERMINAL:
        named = _at(execution, failure)
        turn.move(replace(execution, failure=named), Trigger.FAILED)
        blame(turn, (execution.job, execution.attempt), named)


def lose(turn: Turn, execution: Execution, failure: Failure) -> None:
    """Nobody knows any more what became of an execution; its attempt cannot go on without it."""
    if execution.state not in TERMINAL:
        named = _at(execution, failure)
        turn.move(execution if execution.failure else replace(execution, failure=named), Trigger.LOST)
        blame(turn, (execution.job, execution.attempt), named)


def confirm_stop(turn: Turn, execution: Execution) -> None:
    """Nothing runs any more of an execution that was ordered to stop."""
    turn.move(execution, Trigger.FAILED if execution.condemned else Trigger.STOPPED)
    settle(turn, (execution.job, execution.attempt))


def blame(turn: Turn, key: AttemptKey, failure: Failure) -> None:
    """Note the first failure, unless the attempt has succeeded already, and stop the others."""
    attempt = turn.cluster.attempts[key]
    if attempt.failure is None and not _has_succeeded(turn, key):
        turn.put(replace(attempt, failure=failure))
    stop(turn, key)


def stop(turn: Turn, key: AttemptKey) -> None:
    """Order every execution of an attempt to stop."""
    attempt = turn.cluster.attempts[key]
    if attempt.goal is not Goal.STOP:
        turn.put(replace(attempt, goal=Goal.STOP))
        for execution in list(turn.cluster.gangs.members(key)):
            if execution.state is State.QUEUED:
                turn.move(execution, Trigger.STOPPED)
            elif execution.state is not State.STOPPING and execution.state not in TERMINAL:
                turn.move(execution, Trigger.STOP_ORDERED)
    settle(turn, key)


def settle(turn: Turn, key: AttemptKey) -> None:
    """Once nothing of an attempt is live it has ended, and its job too unless it starts again.

    With the rank0 rule the others are stopped once rank 0 ended well.
    """
    cluster, attempt = turn.cluster, turn.cluster.attempts[key]
    job, tally = cluster.jobs[key[0]], cluster.gangs.tally(key)
    turn.reconsider_queue()
    if sum(tally[state] for state in TERMINAL) < job.spec.size:
        if attempt.goal is not Goal.STOP and _has_succeeded(turn, key):
            stop(turn, key)
    elif attempt.ended_at is None:
        turn.put(replace(attempt, goal=Goal.STOP, ended_at=turn.now))
        if not start_again(turn, key):
            turn.put(replace(cluster.jobs[job.id], ended_at=turn.now))
            if job.delete_when_ended:
                turn.doom(job.id)


def miss_check_in(turn: Turn, key: AttemptKey) -> None:
    """The check-in deadline has come: who is not armed is to blame, each with what it was doing."""
    attempt = turn.cluster.attempts.get(key)
    if attempt is None or attempt.goal not in {Goal.PREPARE, Goal.ARM} or attempt.deadline is None:
        return
    if attempt.deadline > turn.now:
        return
    awaited = State.CHECKED_IN if attempt.goal is Goal.PREPARE else State.ARMED
    missing = [member for member in turn.cluster.gangs.members(key) if not _reached(member.state, awaited)]
    late = f"had not {_words(awaited)} after {_seconds(turn.cluster.jobs[key[0]].spec.timeouts.check_in)}"
    failures = {
        member.id: Failure(kind=FailureKind.CHECK_IN_TIMEOUT, message=f"{late} ({_doing(turn, member)})")
        for member in missing
    }
    _condemn(turn, key, failures, _summary(turn, key, late, missing))


def exceed_run_time(turn: Turn, key: AttemptKey) -> None:
    """The limit on run time has come: the attempt is stopped and fails."""
    attempt = turn.cluster.attempts.get(key)
    limit = turn.cluster.jobs[key[0]].spec.timeouts.run if attempt is not None else None
    if attempt is None or limit is None or attempt.goal is not Goal.RUN or attempt.released_at is None:
        return
    if attempt.released_at + limit > turn.now:
        return
    message = f"still ran after {_seconds(limit)}, the job's limit (timeouts.run)"
    failure = Failure(kind=FailureKind.TIME_LIMIT, message=message)
    running = (member.id for member in turn.cluster.gangs.members(key) if member.state not in TERMINAL)
    _condemn(turn, key, dict.fromkeys(running, failure), failure)


def move_away(turn: Turn, execution: Execution) -> None:
    """Stop the attempt of an execution, so that another one begins on other nodes."""
    key = (execution.job, execution.attempt)
    if turn.cluster.attempts[key].goal is Goal.STOP or execution.state in TERMINAL:
        return
    failure = Failure(kind=FailureKind.DRAINED, message="its node is drained, so the job begins anew elsewhere")
    _condemn(turn, key, {execution.id: failure}, _at(execution, failure))


def give_up_untold(turn: Turn, key: AttemptKey, node: NodeId, message: str) -> None:
    """Stop an attempt of which a node cannot be told what it needs."""
    attempt = turn.cluster.attempts.get(key)
    if attempt is None or attempt.goal is Goal.STOP:
        return
    failure = Failure(kind=FailureKind.TOO_LARGE, message=message)
    untold = [
        member for member in turn.cluster.gangs.members(key) if member.node == node and member.state not in TERMINAL
    ]
    if untold:
        _condemn(turn, key, {member.id: failure for member in untold}, _at(untold[0], failure))


def _condemn(turn: Turn, key: AttemptKey, failures: Mapping[ExecutionId, Failure], summary: Failure) -> None:
    """Stop an attempt because of some executions; these fail, but hold what they have until their end is confirmed."""
    for name, failure in failures.items():
        execution = turn.cluster.executions[name]
        if execution.state not in TERMINAL:
            turn.put(replace(execution, failure=_at(execution, failure), condemned=True))
    blame(turn, key, summary)


def _summary(turn: Turn, key: AttemptKey, late: str, missing: Sequence[Execution]) -> Failure:
    """The failure of the attempt; it has a rank and a node if only one is to blame."""
    size = turn.cluster.jobs[key[0]].spec.size
    who = "; ".join(f"rank {member.rank} on {member.node} ({_doing(turn, member)})" for member in missing)
    several = Failure(kind=FailureKind.CHECK_IN_TIMEOUT, message=f"{len(missing)} of {size} executions {late}: {who}")
    if len(missing) != 1:
        return several
    return _at(missing[0], replace(several, message=f"{late} ({_doing(turn, missing[0])}), as the only one of {size}"))


def _at(execution: Execution, failure: Failure) -> Failure:
    return replace(failure, rank=execution.rank, node=execution.node)


_FORWARD = {
    State.PLACED: Trigger.PLACED,
    State.PREPARING: Trigger.PREPARING,
    State.CHECKED_IN: Trigger.CHECKED_IN,
    State.ARMED: Trigger.ARMED,
    State.RUNNING: Trigger.STARTED,
}


def _order(turn: Turn, attempt: Attempt) -> None:
    turn.put(attempt)
    for execution in turn.cluster.gangs.members((attempt.job, attempt.number)):
        turn.replan(execution)


def _all_reached(turn: Turn, key: AttemptKey, state: State) -> bool:
    tally = turn.cluster.gangs.tally(key)
    later = PROGRESS[PROGRESS.index(state) :]
    return sum(tally[each] for each in later) == turn.cluster.jobs[key[0]].spec.size


def _all_ran(turn: Turn, key: AttemptKey) -> bool:
    tally = turn.cluster.gangs.tally(key)
    ran = sum(tally[state] for state in (State.RUNNING, State.SUCCEEDED))
    return ran == turn.cluster.jobs[key[0]].spec.size


def _reached(state: State, wanted: State) -> bool:
    return state in PROGRESS and PROGRESS.index(state) >= PROGRESS.index(wanted)


def _has_succeeded(turn: Turn, key: AttemptKey) -> bool:
    """Whether what the others do does not matter any more."""
    rule = turn.cluster.jobs[key[0]].spec.success
    return rule is SuccessRule.RANK0 and turn.cluster.gangs.rank(key, 0).state is State.SUCCEEDED


def _doing(turn: Turn, member: Execution) -> str:
    doing = member.detail or _words(member.state)
    presence = turn.cluster.presence.get(member.node) if member.node is not None else None
    there = presence is not None and presence.state is NodeState.READY
    return doing if there else f"{doing}; its node is unreachable"


def _words(state: State) -> str:
    return state.replace("_", " ")


def _seconds(limit: timedelta) -> str:
    return f"{limit.total_seconds():g} s"
