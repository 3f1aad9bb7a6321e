"""The one door of the core: an event in, an answer out, everything else in the turn."""

from datetime import timedelta
from typing import assert_never

from coordinator.core.answers import Answer, Noted
from coordinator.core.attempts import attempts, starts, storing, storing_again, unused, waiting
from coordinator.core.causes import EventCause
from coordinator.core.cluster.deadlines import (
    CheckInDue,
    ClearanceDue,
    CycleDue,
    Deadline,
    DeleteDue,
    HoldDue,
    IdleDue,
    LeaseDue,
    ProtectionDue,
    QueueDue,
    RunTimeDue,
    StartDue,
    StoreDue,
    TaintDue,
    WindowDue,
)
from coordinator.core.data_events import CheckpointOrdered, CodeFetched, ImageFound, OutputsRetried
from coordinator.core.events import (
    ChangeRequested,
    CordonRequested,
    DeleteRequested,
    Event,
    ExecutionsReported,
    FleetChanged,
    HeartbeatReceived,
    HoldRequested,
    InputsFound,
    InventoryChanged,
    JobsSubmitted,
    JobSubmitted,
    NodeConnected,
    NodeDisconnected,
    NodeLabelled,
    PlanTooLarge,
    PoolRemoved,
    PoolSet,
    ProjectAdded,
    ProjectChanged,
    ProjectRemoved,
    ProjectStorageLimited,
    QuotasChanged,
    RemovalRequested,
    ResumeRequested,
    StopRequested,
    SuspendRequested,
    TaintsRequested,
    TimePassed,
    UncordonRequested,
    UnholdRequested,
    WindowRemoved,
    WindowSet,
)
from coordinator.core.requests import (
    changes,
    checkpoints,
    cordons,
    holds,
    inputs,
    jobs,
    nodes,
    pools,
    projects,
    quotas,
    taints,
    windows,
)
from coordinator.core.scheduling.cycle import schedule
from coordinator.core.turn.notices import notice_fleet
from coordinator.core.turn.turn import Turn
from muster.domain.ids import AttemptId

OVERSLEPT = timedelta(seconds=10)
"""A deadline that is so late says that the coordinator slept or its clock jumped, not that nodes are silent."""


def step(turn: Turn, event: Event) -> Answer:
    """Take one event into the cluster; the changes, orders and notes that follow are in the turn."""
    if not isinstance(event, TimePassed):  # several deadlines may have come, each a cause of its own
        turn.notes.follow(event.cause)
    return _take(turn, event)


def _take(turn: Turn, event: Event) -> Answer:  # noqa: C901, PLR0911, PLR0912 - one line for each kind of event
    match event:
        case JobSubmitted():
            return jobs.submit(turn, event)
        case JobsSubmitted():
            return jobs.submit_all(turn, event)
        case StopRequested():
            return jobs.stop(turn, event)
        case DeleteRequested():
            return jobs.delete(turn, event)
        case CheckpointOrdered():
            return checkpoints.take(turn, event)
        case OutputsRetried():
            return storing_again.take(turn, event)
        case HoldRequested() | UnholdRequested() | SuspendRequested() | ResumeRequested():
            return holds.take(turn, event)
        case ChangeRequested():
            return changes.take(turn, event)
        case NodeConnected():
            return nodes.connect(turn, event)
        case NodeDisconnected():
            return nodes.disconnect(turn, event)
        case HeartbeatReceived():
            return nodes.renew(turn, event)
        case InventoryChanged():
            return nodes.change_inventory(turn, event)
        case NodeLabelled():
            return nodes.take_labels(turn, event)
        case ExecutionsReported():
            return nodes.take_reports(turn, event)
        case InputsFound():
            return inputs.note(turn, event)
        case CodeFetched():
            return inputs.note_code(turn, event)
        case ImageFound():
            return inputs.note_image(turn, event)
        case PlanTooLarge():
            return _give_up_untold(turn, event)
        case RemovalRequested():
            return nodes.remove(turn, event)
        case CordonRequested() | UncordonRequested():
            return cordons.take(turn, event)
        case TaintsRequested():
            return taints.take(turn, event)
        case ProjectAdded():
            return projects.add(turn, event)
        case ProjectChanged() | ProjectStorageLimited():
            return projects.change(turn, event)
        case ProjectRemoved():
            return projects.remove(turn, event)
        case QuotasChanged():
            return quotas.change(turn, event)
        case WindowSet():
            return windows.put(turn, event)
        case WindowRemoved():
            return windows.remove(turn, event)
        case PoolSet():
            return pools.put(turn, event)
        case PoolRemoved():
            return pools.remove(turn, event)
        case FleetChanged():
            notice_fleet(turn, event.kind, project=event.project, text=event.text)
            return Noted()
        case TimePassed():
            return _pass_time(turn)
        case _:
            assert_never(event)


def finish(turn: Turn) -> None:
    """After the last event of a turn: forget what is to be forgotten, note what is drained, place what has room."""
    turn.drop_doomed()
    cordons.notice_drained(turn)
    if turn.room_changed:
        turn.queue_considered()
        turn.notes.follow_room()
        schedule(turn)
    for meter in turn.metering.settled(turn.now):
        turn.put(meter)


def _give_up_untold(turn: Turn, event: PlanTooLarge) -> Answer:
    attempts.give_up_untold(turn, AttemptId(event.job, event.attempt), event.node, event.message)
    return Noted()


def _pass_time(turn: Turn) -> Answer:
    due = turn.cluster.deadlines.take_due(turn.now)
    if due and turn.now - due[0][0] > OVERSLEPT:
        turn.cluster.presence.woke_up(turn.now)
        turn.cluster.gangs.uses.woke_up(turn.now)
    for _, deadline in due:
        turn.notes.follow(_cause(deadline))
        _come_due(turn, deadline)
    return Noted()


def _cause(deadline: Deadline) -> EventCause:
    match deadline:
        case LeaseDue(node=node) | ClearanceDue(node=node) | TaintDue(node=node):
            return EventCause(f"deadline {type(deadline).__name__} of {node}")
        case HoldDue(job=job) | DeleteDue(job=job):
            return EventCause(f"deadline {type(deadline).__name__} of {job}")
        case (
            StartDue(attempt=of)
            | CheckInDue(attempt=of)
            | RunTimeDue(attempt=of)
            | IdleDue(attempt=of)
            | QueueDue(attempt=of)
        ):
            return EventCause(f"deadline {type(deadline).__name__} of {of.job}-{of.number}")
        case StoreDue(execution=execution):
            return EventCause(f"deadline StoreDue of {execution}")
        case WindowDue(window=window):
            return EventCause(f"deadline WindowDue of {window}")
        case CycleDue() | ProtectionDue():
            return EventCause(f"deadline {type(deadline).__name__} of the queue")
        case _:
            assert_never(deadline)


def _come_due(turn: Turn, deadline: Deadline) -> None:  # noqa: C901, PLR0912 - one line for each kind of deadline
    match deadline:
        case LeaseDue(node=node):
            nodes.judge(turn, node)
        case TaintDue(node=node):
            taints.judge(turn, node)
        case ClearanceDue(node=node):
            turn.sends.dismissals(node)
        case StartDue(attempt=attempt):
            starts.come_due(turn, attempt)
        case CheckInDue(attempt=attempt):
            attempts.miss_check_in(turn, attempt)
        case RunTimeDue(attempt=attempt):
            attempts.exceed_run_time(turn, attempt)
        case IdleDue(attempt=attempt):
            unused.come_due(turn, attempt)
        case CycleDue() | ProtectionDue():
            turn.reconsider_queue()
        case QueueDue(attempt=attempt, since=since):
            attempts.exceed_queue_time(turn, attempt, since)
        case HoldDue(job=job):
            waiting.come_due(turn, job)
        case WindowDue(window=window):
            windows.come_due(turn, window)
        case DeleteDue(job=job):
            jobs.forget(turn, job)
        case StoreDue(execution=execution):
            storing.come_due(turn, execution)
        case _:
            assert_never(deadline)
