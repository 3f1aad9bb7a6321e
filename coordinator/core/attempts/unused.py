"""What becomes of an attempt that nobody uses: people hear of it, and then its job is stopped."""

from dataclasses import replace
from datetime import datetime

from coordinator.core.attempts.attempts import stop
from coordinator.core.cluster.deadlines import IdleDue
from coordinator.core.records import Execution
from coordinator.core.turn import idling
from coordinator.core.turn.turn import Turn
from muster.domain.ids import AttemptId
from muster.domain.jobs.lifecycle import TERMINAL
from muster.domain.quantity import format_duration


def take_use(turn: Turn, execution: Execution, used_at: datetime) -> None:
    """Count a use that an agent tells of; `used_at` by its own clock."""
    if execution.state not in TERMINAL and idling.limit_of(turn.cluster, execution.attempt_id) is not None:
        turn.cluster.gangs.uses.hear(execution.attempt_id, execution.id, used_at, turn.now)


def come_due(turn: Turn, attempt_id: AttemptId) -> None:
    """Look whether anybody uses an attempt: tell people that it is about to end, end it, or look again later."""
    notice_at = idling.notice_at(turn.cluster, attempt_id)
    if notice_at is None:
        return
    if turn.now >= notice_at and not idling.is_heard(turn.cluster, attempt_id, turn.now):
        turn.cluster.gangs.uses.assume(attempt_id, turn.now)
        idling.watch(turn.cluster, attempt_id)
        return
    end = idling.ends_at(turn.cluster, attempt_id)
    assert end is not None, "people are told of it"
    if turn.now >= end:
        _stop(turn, attempt_id)
    elif turn.now >= notice_at:
        if turn.cluster.gangs.uses.notice(attempt_id) != end:
            count = turn.cluster.gangs.uses.give_notice(attempt_id, end)
            turn.notes.go_unused(turn.cluster.jobs[attempt_id.job], end, count)
        turn.cluster.deadlines.add(end, IdleDue(attempt=attempt_id))
    else:
        idling.watch(turn.cluster, attempt_id)


def _stop(turn: Turn, attempt_id: AttemptId) -> None:
    """Stop the job as if somebody had asked for it: it has not failed, and does not start again."""
    job = turn.cluster.jobs[attempt_id.job]
    limit = idling.limit_of(turn.cluster, attempt_id)
    if job.stop_requested_at is None and limit is not None:
        reason = f"idle for {format_duration(limit)}"
        turn.put(replace(job, stop_requested_at=turn.now, stop_reason=reason))
        stop(turn, attempt_id)
