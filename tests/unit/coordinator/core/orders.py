"""Orders about jobs that wait, in one word each."""

from datetime import timedelta

from coordinator.core.answers import Answer, Refused
from coordinator.core.causes import EventCause
from coordinator.core.events import (
    ChangeRequested,
    HoldRequested,
    ResumeRequested,
    SuspendRequested,
    UnholdRequested,
)
from muster.domain.ids import JobId
from muster.domain.jobs.queueing.change import JobChange
from tests.builders import World

ANN = EventCause("call 1 jobs.hold", "ann")
HOUR = timedelta(hours=1)


def hold(w: World, job: JobId, *, by_operator: bool = False) -> Answer:
    return w.turn(HoldRequested(job=job, by_operator=by_operator, cause=ANN))[0]


def unhold(w: World, job: JobId, *, by_operator: bool = False) -> Answer:
    return w.turn(UnholdRequested(job=job, by_operator=by_operator, cause=ANN))[0]


def suspend(w: World, job: JobId) -> Answer:
    return w.turn(SuspendRequested(job=job, cause=ANN))[0]


def resume(w: World, job: JobId) -> Answer:
    return w.turn(ResumeRequested(job=job, cause=ANN))[0]


def change(w: World, job: JobId, **what: object) -> Answer:
    return w.turn(ChangeRequested(job=job, change=JobChange(**what), cause=ANN))[0]  # type: ignore[arg-type]  # a builder takes any field


def refusal(answer: Answer) -> str:
    assert isinstance(answer, Refused), answer
    return answer.message
