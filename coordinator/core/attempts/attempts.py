"""How an attempt goes on and how it ends: prepare, arm, run; the first failure ends it for all."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from coordinator.core.attempts import checkpoints
from coordinator.core.attempts.starts import start_again
from coordinator.core.records import Attempt, Execution, Job
from coordinator.core.turn import idling
from coordinator.core.turn.turn import Turn
from muster.domain.data.outputs import OutputsStage
from muster.domain.fleet.node import NodeState
from muster.domain.gangs.plan import Goal
from muster.domain.ids import AttemptId, ExecutionId, JobId, NodeId
from muster.domain.jobs.failure import Exit, Failure, FailureKind
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import NOT_PLACED, PROGRESS, TERMINAL, State, Trigger
from muster.domain.quantity import format_duration

STORED_LIVE_ALONE = "but for what was stored while user code ran"


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


def go_on(turn: Turn, attempt_id: AttemptId) -> None:
    """Give the next order once every execution has done the one before."""
    if turn.cluster.attempts[attempt_id].goal is Goal.PREPARE and _all_reached(turn, attempt_id, State.CHECKED_IN):
        _order(turn, replace(turn.cluster.attempts[attempt_id], goal=Goal.ARM, checked_in_at=turn.now))
    if turn.cluster.attempts[attempt_id].goal is Goal.ARM and _all_reached(turn, attempt_id, State.ARMED):
        _order(turn, replace(turn.cluster.attempts[attempt_id], goal=Goal.RUN, released_at=turn.now))
        turn.cluster.deadlines.watch_attempt(turn.cluster.attempts[attempt_id], turn.cluster.jobs[attempt_id.job])
        idling.watch(turn.cluster, attempt_id)
    attempt = turn.cluster.attempts[attempt_id]
    if attempt.goal is Goal.RUN and attempt.started_at is None and _all_ran(turn, attempt_id):
        turn.put(replace(attempt, started_at=turn.now))
        if turn.cluster.jobs[attempt_id.job].job_class is not JobClass.GUARANTEED:
            turn.reconsider_queue()  # from now on others may evict it


def fail(turn: Turn, execution: Execution, failure: Failure) -> None:
    """An execution failed and nothing of it runs: it ends the attempt, and if it is the first it is to blame."""
    if execution.state is State.STOPPING:
        confirm_stop(turn, execution if execution.failure else replace(execution, failure=_at(execution, failure)))
    elif execution.state not in TERMINAL:
        named = _at(execution, failure)
        turn.move(replace(execution, failure=named), Trigger.FAILED)
        blame(turn, execution.attempt_id, named)


def lose(turn: Turn, execution: Execution, failure: Failure) -> None:
    """Nobody knows any more what became of an execution; its attempt cannot go on without it."""
    if execution.state not in TERMINAL:
        named = _at(execution, failure)
        turn.move(execution if execution.failure else replace(execution, failure=named), Trigger.LOST)
        blame(turn, execution.attempt_id, named)


def confirm_stop(turn: Turn, execution: Execution) -> None:
    """Nothing runs any more of an execution that was ordered to stop."""
    turn.move(execution, Trigger.FAILED if execution.condemned else Trigger.STOPPED)
    settle(turn, execution.attempt_id)


def blame(turn: Turn, attempt_id: AttemptId, failure: Failure) -> None:
    """Note the first failure, unless the attempt has succeeded already, and stop the others."""
    attempt = turn.cluster.attempts[attempt_id]
    if attempt.failure is None and not turn.cluster.gangs.has_succeeded(attempt_id):
        turn.put(replace(attempt, failure=failure))
    stop(turn, attempt_id)


def blame_memory(turn: Turn, execution: Execution) -> None:
    """Name the execution that ran out of memory, where rank 0 has only seen a process that it started there end.

    How rank 0 ended, and its last lines, stay: restarts go by its exit code. That code, which is handed on, may be all
    that makes rank 0 look as if its own memory had been used up.
    """
    attempt, framework = turn.cluster.attempts[execution.attempt_id], turn.cluster.jobs[execution.job].spec.framework
    seen, exit_ = attempt.failure, execution.exit
    if exit_ is None or not exit_.out_of_memory or framework is None or not framework.starts_elsewhere:
        return
    if seen is not None and seen.rank == 0 and seen.exit is not None and seen.kind in _ENDS_OF_USER_CODE:
        told = replace(seen, message=str(Exit(code=seen.exit.code)))
        cause = replace(seen, kind=FailureKind.OUT_OF_MEMORY, message=f"ran out of memory; then {told}")
        turn.put(replace(attempt, failure=_at(execution, cause)))


def stop(turn: Turn, attempt_id: AttemptId) -> None:
    """Order every execution of an attempt to stop."""
    attempt = turn.cluster.attempts[attempt_id]
    if attempt.goal is not Goal.STOP:
        turn.put(replace(attempt, goal=Goal.STOP, claim=None, reserved=()))
        for execution in list(turn.cluster.gangs.members(attempt_id)):
            if execution.state in NOT_PLACED:
                turn.move(execution, Trigger.STOPPED)
            elif execution.state is not State.STOPPING and execution.state not in TERMINAL:
                turn.move(execution, Trigger.STOP_ORDERED)
    settle(turn, attempt_id)


def settle(turn: Turn, attempt_id: AttemptId) -> None:
    """Once nothing of an attempt is live it has ended, and its job too unless it starts again.

    Where some executions decide on the success, the others are stopped once these ended well.
    """
    cluster, attempt = turn.cluster, turn.cluster.attempts[attempt_id]
    job, tally = cluster.jobs[attempt_id.job], cluster.gangs.tally(attempt_id)
    turn.reconsider_queue()
    if sum(tally[state] for state in TERMINAL) < job.spec.size:
        if attempt.goal is not Goal.STOP and turn.cluster.gangs.has_succeeded(attempt_id):
            stop(turn, attempt_id)
    elif attempt.ended_at is None:
        _miss_rest_of_outputs(turn, attempt_id)
        turn.put(over := replace(attempt, goal=Goal.STOP, ended_at=turn.now))
        turn.ledger.close(job, over, cluster.gangs.members(attempt_id))
        tell_outputs(turn, attempt_id)
        follow(turn, attempt_id)


def _miss_rest_of_outputs(turn: Turn, attempt_id: AttemptId) -> None:
    """Note of executions that were lost that nothing more of their outputs was stored than while they ran."""
    for execution in list(turn.cluster.gangs.members(attempt_id)):
        outputs = execution.outputs
        if outputs is not None and outputs.stage is OutputsStage.LIVE:
            lost = replace(outputs, stage=OutputsStage.LOST, why=STORED_LIVE_ALONE, at=turn.now)
            turn.put(replace(execution, outputs=lost))


def follow(turn: Turn, attempt_id: AttemptId) -> None:
    """Begin another attempt, or end the job, once an attempt has ended and all that it saved is stored."""
    cluster = turn.cluster
    job, attempt = cluster.jobs[attempt_id.job], cluster.attempts[attempt_id]
    newest = attempt.number == job.attempt and attempt.ended_at is not None and job.ended_at is None
    if newest and (job.delete_when_ended or not cluster.gangs.saving(attempt_id)):
        checkpoints.judge(turn, attempt)
        if not start_again(turn, attempt_id):
            end_job(turn, job.id)


def tell_outputs(turn: Turn, attempt_id: AttemptId) -> None:
    """Tell what has become of the outputs of an attempt, once it has ended and none of them is on its way."""
    cluster = turn.cluster
    if cluster.attempts[attempt_id].ended_at is None or cluster.gangs.storing_in(attempt_id):
        return
    left = tuple(member for member in cluster.gangs.members(attempt_id) if member.outputs is not None)
    if left:
        turn.notes.settle_outputs(left)


def end_job(turn: Turn, name: JobId) -> None:
    """End a job once nothing of it will run any more, and nothing that it left is on its way."""
    job = turn.cluster.jobs[name]
    waits = turn.cluster.gangs.storing(name) > 0 and not job.delete_when_ended
    if job.ended_at is not None or waits or turn.cluster.newest_attempt(name).ended_at is None:
        return
    found = tuple(replace(each, listing="") for each in job.inputs)  # lists are long, and nobody reads them any more
    turn.put(ended := replace(job, ended_at=turn.now, inputs=found))
    turn.cluster.deadlines.watch_job(ended)
    if job.delete_when_ended:
        turn.doom(name)


def miss_check_in(turn: Turn, attempt_id: AttemptId) -> None:
    """The check-in deadline has come: who is not armed is to blame, each with what it was doing."""
    attempt = turn.cluster.attempts.get(attempt_id)
    if attempt is None or attempt.goal not in {Goal.PREPARE, Goal.ARM} or attempt.deadline is None:
        return
    if attempt.deadline > turn.now:
        return
    awaited = State.CHECKED_IN if attempt.goal is Goal.PREPARE else State.ARMED
    missing = [member for member in turn.cluster.gangs.members(attempt_id) if not _reached(member.state, awaited)]
    late = f"had not {_words(awaited)} after {_seconds(turn.cluster.jobs[attempt_id.job].spec.armed_within)}"
    failures = {
        member.id: Failure(kind=FailureKind.CHECK_IN_TIMEOUT, message=f"{late} ({_doing(turn, member)})")
        for member in missing
    }
    _condemn(turn, attempt_id, failures, _summary(turn, attempt_id, late, missing))


def exceed_run_time(turn: Turn, attempt_id: AttemptId) -> None:
    """The limit on run time has come: the attempt is stopped and fails."""
    attempt = turn.cluster.attempts.get(attempt_id)
    of_job = turn.cluster.jobs[attempt_id.job].spec.timeouts.run if attempt is not None else None
    limit = attempt.run_limit(of_job) if attempt is not None else None
    if attempt is None or limit is None or attempt.goal is not Goal.RUN or attempt.released_at is None:
        return
    if attempt.released_at + limit > turn.now:
        return
    whose = "the job's limit (timeouts.run)" if limit == of_job else f"the longest run in pool {attempt.pool}"
    message = f"still ran after {_seconds(limit)}, {whose}"
    failure = Failure(kind=FailureKind.TIME_LIMIT, message=message)
    running = (member.id for member in turn.cluster.gangs.members(attempt_id) if member.state not in TERMINAL)
    _condemn(turn, attempt_id, dict.fromkeys(running, failure), failure)


def exceed_queue_time(turn: Turn, attempt_id: AttemptId, since: datetime) -> None:
    """The limit on time in the queue may have come: the attempt fails, or how long it was there is stored."""
    attempt = turn.cluster.attempts.get(attempt_id)
    if attempt is None or attempt.goal is not None or attempt.queued_since != since:
        return
    job, passed = turn.cluster.jobs[attempt_id.job], attempt.queue_time(turn.now)
    limit = job.spec.timeouts.queue
    if limit is None:
        return
    if passed < limit:
        attempt = replace(attempt, queued_for=passed, queued_since=turn.now)
        turn.put(attempt)
        turn.cluster.deadlines.watch_queue(attempt, job)
        return
    message = f"found no room in {format_duration(limit)}, as long as it may be in the queue (timeouts.queue)"
    failure = Failure(kind=FailureKind.QUEUE_TIMEOUT, message=message)
    for member in list(turn.cluster.gangs.members(attempt_id)):
        turn.move(replace(member, failure=failure), Trigger.FAILED)
    blame(turn, attempt_id, failure)


def suspend(turn: Turn, attempt_id: AttemptId, by: str) -> None:
    """Stop an attempt that is placed; the next one waits until its job is resumed."""
    failure = Failure(kind=FailureKind.SUSPENDED, message=f"suspended by {by}" if by else "suspended")
    blame(turn, attempt_id, failure)


def move_away(turn: Turn, execution: Execution, why: str = "its node is drained") -> None:
    """Stop the attempt of an execution, so that another one begins on other nodes."""
    attempt_id = execution.attempt_id
    if turn.cluster.attempts[attempt_id].goal is Goal.STOP or execution.state in TERMINAL:
        return
    failure = Failure(kind=FailureKind.DRAINED, message=f"{why}, so the job begins anew elsewhere")
    _condemn(turn, attempt_id, {execution.id: failure}, _at(execution, failure))


def preempt(turn: Turn, attempt_id: AttemptId, winner: Job) -> None:
    """Stop an attempt so that another job gets what it has; it starts again in its old place, unless its job minds.

    How its executions end after that does not matter.
    """
    attempt, job = turn.cluster.attempts[attempt_id], turn.cluster.jobs[attempt_id.job]
    whose = "its own project" if winner.spec.project == job.spec.project else "another project"
    failure = Failure(kind=FailureKind.PREEMPTED, message=f"had to make room for a job of {whose}")
    turn.put(replace(attempt, preempted_for=winner.id, failure=failure))
    turn.put(replace(job, evictions=job.evictions + 1))
    live = [member.id for member in turn.cluster.gangs.members(attempt_id) if member.state not in TERMINAL]
    _condemn(turn, attempt_id, dict.fromkeys(live, failure) if job.spec.on_preempt.restart else {}, failure)


def give_up_untold(turn: Turn, attempt_id: AttemptId, node: NodeId, message: str) -> None:
    """Stop an attempt of which a node cannot be told what it needs."""
    attempt = turn.cluster.attempts.get(attempt_id)
    if attempt is None or attempt.goal is Goal.STOP:
        return
    failure = Failure(kind=FailureKind.TOO_LARGE, message=message)
    untold = [
        member
        for member in turn.cluster.gangs.members(attempt_id)
        if member.node == node and member.state not in TERMINAL
    ]
    if untold:
        _condemn(turn, attempt_id, {member.id: failure for member in untold}, _at(untold[0], failure))


def _condemn(turn: Turn, attempt_id: AttemptId, failures: Mapping[ExecutionId, Failure], summary: Failure) -> None:
    """Stop an attempt because of some executions; these fail, but hold what they have until their end is confirmed."""
    for name, failure in failures.items():
        execution = turn.cluster.executions[name]
        if execution.state not in TERMINAL:
            turn.put(replace(execution, failure=_at(execution, failure), condemned=True))
    blame(turn, attempt_id, summary)


def _summary(turn: Turn, attempt_id: AttemptId, late: str, missing: Sequence[Execution]) -> Failure:
    """The failure of the attempt; it has a rank and a node if only one is to blame."""
    size = turn.cluster.jobs[attempt_id.job].spec.size
    who = "; ".join(f"rank {member.rank} on {member.node} ({_doing(turn, member)})" for member in missing)
    several = Failure(kind=FailureKind.CHECK_IN_TIMEOUT, message=f"{len(missing)} of {size} executions {late}: {who}")
    if len(missing) != 1:
        return several
    return _at(missing[0], replace(several, message=f"{late} ({_doing(turn, missing[0])}), as the only one of {size}"))


def _at(execution: Execution, failure: Failure) -> Failure:
    return replace(failure, rank=execution.rank, node=execution.node)


_ENDS_OF_USER_CODE = {FailureKind.EXIT_CODE, FailureKind.SIGNAL, FailureKind.OUT_OF_MEMORY}

_FORWARD = {
    State.PLACED: Trigger.PLACED,
    State.PREPARING: Trigger.PREPARING,
    State.CHECKED_IN: Trigger.CHECKED_IN,
    State.ARMED: Trigger.ARMED,
    State.RUNNING: Trigger.STARTED,
}


def _order(turn: Turn, attempt: Attempt) -> None:
    turn.put(attempt)
    for execution in turn.cluster.gangs.members(attempt.attempt_id):
        turn.replan(execution)


def _all_reached(turn: Turn, attempt_id: AttemptId, state: State) -> bool:
    tally = turn.cluster.gangs.tally(attempt_id)
    later = PROGRESS[PROGRESS.index(state) :]
    return sum(tally[each] for each in later) == turn.cluster.jobs[attempt_id.job].spec.size


def _all_ran(turn: Turn, attempt_id: AttemptId) -> bool:
    tally = turn.cluster.gangs.tally(attempt_id)
    ran = sum(tally[state] for state in (State.RUNNING, State.SUCCEEDED))
    return ran == turn.cluster.jobs[attempt_id.job].spec.size


def _reached(state: State, wanted: State) -> bool:
    return state in PROGRESS and PROGRESS.index(state) >= PROGRESS.index(wanted)


def _doing(turn: Turn, member: Execution) -> str:
    doing = member.detail or _words(member.state)
    presence = turn.cluster.presence.get(member.node) if member.node is not None else None
    there = presence is not None and presence.state is NodeState.READY
    return doing if there else f"{doing}; its node is unreachable"


def _words(state: State) -> str:
    return state.replace("_", " ")


def _seconds(limit: timedelta) -> str:
    return f"{limit.total_seconds():g} s"
