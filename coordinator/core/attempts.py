"""How an attempt goes on and how it ends: prepare, arm, run; the first failure ends it for all."""

from dataclasses import replace
from datetime import timedelta

from coordinator.core.cluster import AttemptKey, watch_deadlines
from coordinator.core.records import Attempt, Execution
from coordinator.core.turn import Turn
from muster.domain.failure import Failure, FailureKind
from muster.domain.lifecycle import PROGRESS, TERMINAL, State, SuccessRule, Trigger
from muster.domain.plan import Goal


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
    attempt = turn.cluster.attempts[key]
    if attempt.goal is Goal.PREPARE and _all_reached(turn, key, State.CHECKED_IN):
        _order(turn, replace(attempt, goal=Goal.ARM, checked_in_at=turn.now))
    elif attempt.goal is Goal.ARM and _all_reached(turn, key, State.ARMED):
        released = replace(attempt, goal=Goal.RUN, released_at=turn.now)
        _order(turn, released)
        watch_deadlines(turn.cluster, key, released)
    elif attempt.goal is Goal.RUN and attempt.started_at is None and _all_ran(turn, key):
        turn.put(replace(attempt, started_at=turn.now))


def fail(turn: Turn, execution: Execution, failure: Failure) -> None:
    """An execution failed: it ends the attempt, and if it is the first it is to blame."""
    named = replace(failure, rank=execution.rank, node=execution.node)
    if execution.state is State.STOPPING:
        turn.move(replace(execution, failure=named), Trigger.STOPPED)
    elif execution.state not in TERMINAL:
        turn.move(replace(execution, failure=named), Trigger.FAILED)
        blame(turn, (execution.job, execution.attempt), named)
    settle(turn, (execution.job, execution.attempt))


def blame(turn: Turn, key: AttemptKey, failure: Failure) -> None:
    """Note the first failure and stop the others."""
    attempt = turn.cluster.attempts[key]
    if attempt.failure is None:
        turn.put(replace(attempt, failure=failure))
    stop(turn, key)


def stop(turn: Turn, key: AttemptKey) -> None:
    """Order every execution of an attempt to stop."""
    attempt = turn.cluster.attempts[key]
    if attempt.goal is not Goal.STOP:
        turn.put(replace(attempt, goal=Goal.STOP))
    for execution in list(turn.cluster.members(key)):
        if execution.state is State.QUEUED:
            turn.move(execution, Trigger.STOPPED)
        elif execution.state is not State.STOPPING and execution.state not in TERMINAL:
            turn.move(execution, Trigger.STOP_ORDERED)
    settle(turn, key)


def settle(turn: Turn, key: AttemptKey) -> None:
    """End the attempt and its job once nothing of it is live; with the rank0 rule, once rank 0 ended well."""
    cluster, attempt = turn.cluster, turn.cluster.attempts[key]
    job = cluster.jobs[key[0]]
    tally = cluster.tally(key)
    turn.room_changed = True
    if sum(tally[state] for state in TERMINAL) < job.spec.size:
        succeeded = cluster.rank(key, 0).state is State.SUCCEEDED
        if job.spec.success is SuccessRule.RANK0 and succeeded and attempt.goal is not Goal.STOP:
            stop(turn, key)
        return
    if attempt.ended_at is None:
        turn.put(replace(attempt, goal=Goal.STOP, ended_at=turn.now))
        turn.put(replace(job, ended_at=turn.now))
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
    missing = [member for member in turn.cluster.members(key) if not _reached(member.state, awaited)]
    limit = turn.cluster.jobs[key[0]].spec.timeouts.check_in
    size = turn.cluster.jobs[key[0]].spec.size
    who = "; ".join(f"rank {member.rank} on {member.node} ({_doing(member)})" for member in missing)
    verb = "checked in" if awaited is State.CHECKED_IN else "armed"
    summary = f"{len(missing)} of {size} executions had not {verb} after {_seconds(limit)}: {who}"
    first = missing[0]
    first_failure = Failure(kind=FailureKind.CHECK_IN_TIMEOUT, message=summary, rank=first.rank, node=first.node)
    turn.put(replace(attempt, failure=first_failure))
    for member in missing:
        message = f"had not {verb} after {_seconds(limit)}; {_doing(member)}"
        fail(turn, turn.cluster.executions[member.id], Failure(kind=FailureKind.CHECK_IN_TIMEOUT, message=message))


def exceed_run_time(turn: Turn, key: AttemptKey) -> None:
    """The limit on run time has come: the attempt is stopped and fails."""
    attempt = turn.cluster.attempts.get(key)
    limit = turn.cluster.jobs[key[0]].spec.timeouts.run if attempt is not None else None
    if attempt is None or limit is None or attempt.goal is not Goal.RUN or attempt.released_at is None:
        return
    if attempt.released_at + limit > turn.now:
        return
    running = [member for member in turn.cluster.members(key) if member.state not in TERMINAL]
    message = f"still ran after {_seconds(limit)}, the job's limit (timeouts.run)"
    for member in running:
        current = turn.cluster.executions[member.id]
        if current.state is not State.STOPPING:
            fail(turn, current, Failure(kind=FailureKind.TIME_LIMIT, message=message))


_FORWARD = {
    State.PLACED: Trigger.PLACED,
    State.PREPARING: Trigger.PREPARING,
    State.CHECKED_IN: Trigger.CHECKED_IN,
    State.ARMED: Trigger.ARMED,
    State.RUNNING: Trigger.STARTED,
}


def _order(turn: Turn, attempt: Attempt) -> None:
    turn.put(attempt)
    for execution in turn.cluster.members((attempt.job, attempt.number)):
        turn.replan(execution)


def _all_reached(turn: Turn, key: AttemptKey, state: State) -> bool:
    tally = turn.cluster.tally(key)
    later = PROGRESS[PROGRESS.index(state) :]
    return sum(tally[each] for each in later) == turn.cluster.jobs[key[0]].spec.size


def _all_ran(turn: Turn, key: AttemptKey) -> bool:
    tally = turn.cluster.tally(key)
    ran = sum(tally[state] for state in (State.RUNNING, State.SUCCEEDED))
    return ran == turn.cluster.jobs[key[0]].spec.size


def _reached(state: State, wanted: State) -> bool:
    return state in PROGRESS and PROGRESS.index(state) >= PROGRESS.index(wanted)


def _doing(member: Execution) -> str:
    return member.detail or f"it is {member.state.replace('_', ' ')}"


def _seconds(limit: timedelta) -> str:
    return f"{limit.total_seconds():g} s"
