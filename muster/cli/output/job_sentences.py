"""A job in plain lines: each change while it prepares, and how it ended."""

import re
from collections.abc import Iterator
from datetime import datetime

from muster.cli.output.units import between_text, in_local_time
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.domain.jobs.view import ExecutionView, JobView

_NEWS = {State.PREPARING, State.CHECKED_IN, State.FAILED, State.LOST}
"""States of single executions that get a line; in the others the job's phase says enough."""
_HERE = {State.CHECKED_IN, State.ARMED, State.RUNNING, State.SUCCEEDED}


def changes(before: JobView | None, after: JobView, now: datetime) -> Iterator[str]:
    """A line for each thing that is different; a percentage that grows is not."""
    # The end of a job is told by its verdict.
    if (before is None or before.phase is not after.phase) and not after.phase.ended:
        told = f": {in_local_time(after.summary, now)}" if after.summary else ""
        yield f"{after.spec.name} ({after.id}) {after.phase}{told}"
    known = {} if before is None else {execution.id: execution for execution in executions_of(before)}
    executions = executions_of(after)
    for execution in executions:
        if execution.state in _NEWS and _told(execution) != _told(known.get(execution.id)):
            yield _line(execution)
    now_here = arrived(executions)
    if executions and now_here != arrived(tuple(known.values())) and after.phase is JobPhase.PREPARING:
        yield f"checked in {now_here}/{len(executions)}"


def executions_of(job: JobView) -> tuple[ExecutionView, ...]:
    """The executions of the newest attempt, by rank."""
    return job.attempts[-1].executions if job.attempts else ()


def arrived(executions: tuple[ExecutionView, ...]) -> int:
    """How many of them have checked in."""
    return sum(execution.state in _HERE for execution in executions)


def ran_text(job: JobView, until: datetime | None) -> str:
    """How long user code of the newest attempt has run; empty where none has.

    Not since it was reported to run: of what ends at once one hears both together.
    """
    released_at = job.attempts[-1].released_at if job.attempts else None
    return between_text(released_at or job.started_at, until)


def status_words(job: JobView, now: datetime) -> str:
    """A job that runs, in one line: `ring (j7k2) running for 12.3 s: 3 of 3 running, 0 succeeded`."""
    ran = ran_text(job, job.ended_at or now)
    summary = f": {in_local_time(job.summary, now)}" if job.summary else ""
    return f"{job.spec.name} ({job.id}) {job.phase}{f' for {ran}' if ran else ''}{summary}"


def _told(execution: ExecutionView | None) -> tuple[State, str] | None:
    return None if execution is None else (execution.state, re.sub(r"[\d.]+", "", execution.detail))


def _line(execution: ExecutionView) -> str:
    place = f" on {execution.node}" if execution.node else ""
    told = execution.failure.message if execution.failure else execution.detail
    doing = f": {told}" if told else ""
    return f"rank {execution.rank}{place} {execution.state.replace('_', ' ')}{doing}"


def verdict_words(job: JobView) -> tuple[str, str, str]:
    """How an ended job ended, in one line: what comes before its phase, the phase, and what comes after."""
    ran = ran_text(job, job.ended_at)
    after = f" after {ran}" if ran else " before any user code ran" if job.attempts else ""
    newest = job.attempts[-1].number if job.attempts else 1
    after += f" in attempt {newest}" if newest > 1 else ""
    why = _why_stopped(job) if job.failure is None else str(job.failure)
    return f"{job.spec.name} ({job.id}) ", job.phase, f"{after}: {why}" if why else after


def _why_stopped(job: JobView) -> str:
    """Why a job was stopped that has not failed, where there is more to say than that somebody asked for it."""
    _, told, why = job.summary.partition(f"{JobPhase.STOPPED}: ")
    return why if told and job.phase is JobPhase.STOPPED else ""
