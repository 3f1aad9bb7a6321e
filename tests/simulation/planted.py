"""Faults that were made on purpose: each breaks one rule of a core, and the simulation must find it."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from agent.core.actions import Action
from agent.core.events import Contact, OutputsSeen, PeerAsked, PlanReceived
from agent.core.events import Event as AgentEvent
from agent.core.step import AgentState, Now
from agent.core.step import step as agent_step
from agent.core.stream import StreamAction, StreamEvent, StreamState, advance
from coordinator.core.answers import Accepted, Answer, Noted, ProjectGone
from coordinator.core.attempts import attempts
from coordinator.core.events import (
    Event,
    ExecutionsReported,
    HoldRequested,
    NodeConnected,
    ProjectRemoved,
    ResumeRequested,
    StopRequested,
    UnholdRequested,
    WindowSet,
)
from coordinator.core.placement.suitable import unfit
from coordinator.core.sharing.standing import Tally
from coordinator.core.step import finish, step
from coordinator.core.turn.metering import Metering
from coordinator.core.turn.spending import SpendingLedger
from coordinator.core.turn.turn import Turn
from muster.domain.data.outputs import OutputsStage
from muster.domain.fleet.quota import MILLIS_PER_GPU, Amounts, amounts_of
from muster.domain.gangs.fence import LEASE, PeerWord
from muster.domain.gangs.plan import Goal, Report, Stage
from muster.domain.ids import NodeId
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import NOT_PLACED, TERMINAL, JobPhase, State, Trigger
from muster.domain.jobs.placing.affinity import Affinity
from muster.domain.jobs.placing.topology import ANYWHERE
from muster.domain.jobs.queueing.waiting import WaitKind, WaitReason
from tests.simulation.cores import Cores, Finish


def _taking_a_check_in_for_an_arming(turn: Turn, event: Event) -> Answer:
    if isinstance(event, ExecutionsReported):
        event = replace(event, reports=tuple(map(_armed_already, event.reports)))
    return step(turn, event)


def _armed_already(report: Report) -> Report:
    return replace(report, stage=Stage.ARMED) if report.stage is Stage.PREPARED else report


def _ignoring_stops(turn: Turn, event: Event) -> Answer:
    return Noted() if isinstance(event, StopRequested) else step(turn, event)


def _keeping_stops_in_memory(turn: Turn, event: Event) -> Answer:
    """Carries a stop out, and leaves out of the commit that the job was asked to stop."""
    answer = step(turn, event)
    if isinstance(event, StopRequested) and event.job in turn.cluster.jobs:
        turn.put(replace(turn.cluster.jobs[event.job], stop_requested_at=None))
    return answer


def _removing_used_projects(turn: Turn, event: Event) -> Answer:
    """Removes a project whatever goes on in it."""
    if not isinstance(event, ProjectRemoved) or event.name not in turn.cluster.projects:
        return step(turn, event)
    project = turn.cluster.projects[event.name]
    turn.forget(project)
    return ProjectGone(project=project)


def _removing_from_memory(turn: Turn, event: Event) -> Answer:
    """Leaves the removal of a project out of the commit."""
    before = turn.cluster.projects.get(event.name) if isinstance(event, ProjectRemoved) else None
    answer = step(turn, event)
    if before is not None and isinstance(answer, ProjectGone):
        turn.put(before)
        turn.cluster.drop_unit(before)
    return answer


def _counting_time_outside(turn: Turn, event: Event) -> Answer:
    """Counts what a job waits outside the queue as time that it was there."""
    answer = step(turn, event)
    if isinstance(event, UnholdRequested | ResumeRequested) and event.job in turn.cluster.jobs:
        attempt = turn.cluster.newest_attempt(event.job)
        since = turn.cluster.gangs.rank(attempt.attempt_id, 0).times.get(State.WAITING)
        if attempt.queued_since == turn.now and since is not None:
            turn.put(replace(attempt, queued_for=attempt.queued_for + (turn.now - since)))
    return answer


def _forgetting_accounts(turn: Turn) -> None:
    """Places what has room, and stores no account of what has ended."""
    finish(turn)
    turn.ledger = SpendingLedger()


def _letting_meters_run_on(turn: Turn) -> None:
    """Does not hear of what began and ended to hold something before the queue was looked at."""
    turn.metering = Metering(turn.cluster)
    finish(turn)


def _leaving_held_jobs_queued(turn: Turn, event: Event) -> Answer:
    """Notes a hold, and leaves the job where it is: in the queue, where its demand counts."""
    job = turn.cluster.jobs.get(event.job) if isinstance(event, HoldRequested) else None
    if job is None or job.ended_at is not None or turn.cluster.phase(job.id) is not JobPhase.QUEUED:
        return step(turn, event)
    turn.put(replace(job, holds=(WaitReason(kind=WaitKind.USER),)))
    return Accepted(job=turn.cluster.jobs[job.id])


def _forgetting_taints(turn: Turn, event: Event) -> Answer:
    """Takes what an agent says as it connects for all that there is to know of its node."""
    answer = step(turn, event)
    if isinstance(event, NodeConnected) and (node := turn.cluster.nodes.get(event.node)) is not None and node.taints:
        turn.put(replace(node, taints=()))
    return answer


def _comparing_windows_with_limits_alone(turn: Turn, event: Event) -> Answer:
    """Lets a job begin that ends in time only if its check-in takes no time: one of 15 seconds at the least."""
    if isinstance(event, WindowSet):
        event = replace(event, window=replace(event.window, begins=event.window.begins + timedelta(seconds=15)))
    return step(turn, event)


def _claiming_nothing(turn: Turn) -> None:
    """Has others make room, and keeps for nobody what they had."""
    finish(turn)
    for attempt in list(turn.cluster.attempts.values()):
        if attempt.claim is not None:
            turn.put(replace(attempt, claim=None))


def _adding_portions_up(turn: Turn) -> None:
    """Seats a portion of a GPU where several GPUs of a node together have so much left, though none has."""
    finish(turn)
    cluster = turn.cluster
    for job in list(cluster.queue):
        needs, attempt = job.spec.roles[0].resources, cluster.newest_attempt(job.id)
        portion = needs.portion
        if portion is None or max(job.spec.size, needs.gpus) > 1 or job.job_class is JobClass.GUARANTEED:
            continue
        for node in cluster.load.free.fresh():
            left = [each.thousandths for each in node.shared]
            enough = max(left, default=0) < portion.thousandths <= sum(left)
            if enough and unfit(job.spec, job.spec.roles[0], node) is None:
                turn.put(
                    replace(
                        attempt,
                        claim=None,
                        goal=Goal.PREPARE,
                        placed_at=turn.now,
                        deadline=turn.now + job.spec.timeouts.check_in,
                    )
                )
                execution = cluster.gangs.rank(attempt.attempt_id, 0)
                turn.move(replace(execution, node=node.node, gpus=(node.shared[0].gpu.uuid,)), Trigger.PLACED)
                return


def _counting_devices_whole(turn: Turn) -> None:
    """Counts each MIG device that is given away as a whole GPU."""
    queued = [attempt for job in turn.cluster.queue if (attempt := turn.cluster.newest_attempt(job.id))]
    finish(turn)
    units = turn.cluster.unit_load.units
    for attempt in queued:
        for member in turn.cluster.gangs.members(attempt.attempt_id):
            job = turn.cluster.jobs[member.job]
            if member.node is not None and job.spec.role_of(member.rank).resources.mig is not None:
                more = Amounts(gpus=len(member.gpus) * MILLIS_PER_GPU).plus(amounts_of(job.spec, member.rank).times(-1))
                units.count(job.spec.project, turn.cluster.unit_load.pool_of(job), Tally.HELD, more)


def _ignoring_wishes(ignored: Callable[[JobSpec], JobSpec]) -> Finish:
    """Places jobs as if they said nothing of something."""

    def cycle(turn: Turn) -> None:
        jobs = list(turn.cluster.queue)
        for job in jobs:
            turn.put(replace(job, spec=ignored(job.spec)))
        finish(turn)
        for job in jobs:
            if (known := turn.cluster.jobs.get(job.id)) is not None:
                turn.put(replace(known, spec=job.spec))

    return cycle


def _anywhere(spec: JobSpec) -> JobSpec:
    return replace(spec, topology=ANYWHERE)


def _on_any_node(spec: JobSpec) -> JobSpec:
    return replace(spec, affinity=Affinity())


def _opening_pools_early(turn: Turn) -> None:
    """Lets jobs go to the pools that they name for later as if they had waited for an hour more."""
    turn.cluster.queue.wake(turn.now + timedelta(hours=1))
    finish(turn)


def _taking_victims_for_gone(turn: Turn) -> None:
    """Counts what victims have as free from the moment on at which they are told to stop."""
    finish(turn)
    for execution in list(turn.cluster.executions.values()):
        if execution.state is State.STOPPING and turn.cluster.attempts[execution.attempt_id].preempted_for is not None:
            attempts.confirm_stop(turn, execution)


def _letting_victims_go_first(turn: Turn, event: Event) -> Answer:
    """Gives a claim up as soon as a victim has ended, so that whoever is first in the queue gets the seats."""
    before = {attempt.preempted_for for attempt in turn.cluster.attempts.values() if attempt.ended_at is None}
    answer = step(turn, event)
    after = {attempt.preempted_for for attempt in turn.cluster.attempts.values() if attempt.ended_at is None}
    for job in filter(None, before - after):
        if job in turn.cluster.jobs and (attempt := turn.cluster.newest_attempt(job)).claim is not None:
            turn.put(replace(attempt, claim=None))
    return answer


def _keeping_what_was_guaranteed(turn: Turn, event: Event) -> Answer:
    """Goes on counting what guaranteed jobs had, once they have ended, for the quota of their units."""
    cluster = turn.cluster
    held = [
        (each, cluster.jobs[each.job], cluster.unit_load.pool_of(cluster.jobs[each.job]))
        for each in cluster.executions.values()
        if each.state not in NOT_PLACED | TERMINAL and cluster.jobs[each.job].job_class is JobClass.GUARANTEED
    ]
    answer = step(turn, event)
    for execution, job, pool in held:
        now = cluster.executions.get(execution.id)
        if now is not None and now.state in TERMINAL:
            amounts = amounts_of(job.spec, execution.rank)
            cluster.unit_load.units.count(job.spec.project, pool, Tally.FIXED, amounts)
    return answer


def _taking_checkpoints_back(turn: Turn, event: Event) -> Answer:
    """Takes the checkpoint that a rank told of last for that of its gang, also where another rank has saved since."""
    answer = step(turn, event)
    for report in event.reports if isinstance(event, ExecutionsReported) else ():
        execution = turn.cluster.executions.get(report.execution)
        if report.saved_at is not None and execution is not None:
            turn.put(replace(turn.cluster.attempts[execution.attempt_id], saved_at=report.saved_at))
    return answer


def _running_half_as_long(spec: JobSpec) -> JobSpec:
    run = spec.timeouts.run
    return spec if run is None else replace(spec, timeouts=replace(spec.timeouts, run=run / 2))


def _protecting_from_the_placement_on(turn: Turn) -> None:
    """Takes the time of an attempt's placement for that of its start."""
    finish(turn)
    for attempt in list(turn.cluster.attempts.values()):
        if attempt.placed_at is not None and attempt.started_at is None and attempt.ended_at is None:
            turn.put(replace(attempt, started_at=attempt.placed_at))


def _forgetting_last_words(turn: Turn, event: Event) -> Answer:
    if isinstance(event, ExecutionsReported | NodeConnected):
        event = replace(event, reports=tuple(map(_silent_for_long, event.reports)))
    return step(turn, event)


def _silent_for_long(report: Report) -> Report:
    return replace(report, no_permit_for=timedelta(days=1)) if report.no_permit_for is not None else report


class _FirstOfLastWords:
    """Takes the earliest of the times at which a node can last have given a permit, where the latest counts."""

    def __init__(self) -> None:
        self._words: dict[tuple[str, NodeId], datetime] = {}

    def __call__(self, turn: Turn, event: Event) -> Answer:
        if isinstance(event, ExecutionsReported | NodeConnected):
            event = replace(event, reports=tuple(self._earliest(event.node, event.reports, turn.now)))
        return step(turn, event)

    def _earliest(self, node: NodeId, reports: Iterable[Report], now: datetime) -> Iterable[Report]:
        for report in reports:
            if report.no_permit_for is None:
                yield report
                continue
            key = (report.execution.rpartition("-")[0], node)
            told = now - report.no_permit_for
            self._words[key] = min(told, self._words.get(key, told))
            yield replace(report, no_permit_for=now - self._words[key])


def _taking_old_plans(state: AgentState, event: AgentEvent, now: Now) -> list[Action]:
    """Applies every plan that does not build on another, however old it is."""
    ledger = state.ledger
    if isinstance(event, PlanReceived) and event.plan.base == 0 and event.plan.revision <= ledger.revision:
        ledger.revision = 0
    return agent_step(state, event, now)


def _counting_from_acknowledgements(state: AgentState, event: AgentEvent, now: Now) -> list[Action]:
    """Takes the time at which an acknowledgement comes for the time at which the coordinator heard the agent."""
    return agent_step(state, Contact(sent_at=now.boot) if isinstance(event, Contact) else event, now)


def _never_connected(state: AgentState, event: AgentEvent, now: Now) -> list[Action]:
    """Tells peers that the coordinator is away, also when it is there."""
    if isinstance(event, PeerAsked) and state.fencing.answer(event.attempt, now.boot) is PeerWord.CONNECTED:
        lonely = replace(now, boot=now.boot + LEASE.total_seconds())
        given = agent_step(state, event, lonely)
        state.fencing.said[event.attempt] = now.boot
        return given
    return agent_step(state, event, now)


def _never_doubting(stream: StreamState, event: StreamEvent, at: float) -> list[StreamAction]:
    """Takes a coordinator that says nothing any more to be there."""
    stream.heard_at = at
    return advance(stream, event, at)


def _storing_with_all_it_had(turn: Turn, event: Event) -> Answer:
    """Takes an execution that stores its outputs for one that still runs, so that it keeps its GPUs."""
    if isinstance(event, ExecutionsReported):
        for report in event.reports:
            known = turn.cluster.executions.get(report.execution)
            if known is not None and _is_storing(report) and known.state is State.RUNNING:
                turn.put(replace(known, outputs=report.outputs))
        event = replace(event, reports=tuple(each for each in event.reports if not _is_storing(each)))
    return step(turn, event)


def _is_storing(report: Report) -> bool:
    return report.outputs is not None and report.outputs.on_their_way


def _telling_before_it_is_stored(state: AgentState, event: AgentEvent, now: Now) -> list[Action]:
    """Says that outputs are stored when they are about to be."""
    if isinstance(event, OutputsSeen) and event.outputs.on_their_way:
        event = replace(event, outputs=replace(event.outputs, stage=OutputsStage.STORED))
    return agent_step(state, event, now)


def _losing_what_is_stored(turn: Turn, event: Event) -> Answer:
    """Gives outputs up whose agent begins anew with them, also where they were stored before."""
    answer = step(turn, event)
    if isinstance(event, NodeConnected | ExecutionsReported):
        for report in event.reports:
            known = turn.cluster.executions.get(report.execution)
            stored = known is not None and known.outputs is not None and known.outputs.stage is OutputsStage.STORED
            if known is not None and stored and report.outputs is not None and _is_storing(report):
                turn.put(replace(known, outputs=replace(report.outputs, stage=OutputsStage.LOST)))
    return answer


RELEASED_TOO_EARLY = Cores(step=_taking_a_check_in_for_an_arming)
STOP_IGNORED = Cores(step=_ignoring_stops)
LAST_WORDS_FORGOTTEN = Cores(step=_forgetting_last_words)
OLD_PLAN_APPLIED = Cores(agent=_taking_old_plans)
CONTACT_FROM_ACKNOWLEDGEMENT = Cores(agent=_counting_from_acknowledgements)
STOP_NOT_STORED = Cores(step=_keeping_stops_in_memory)
USED_PROJECT_REMOVED = Cores(step=_removing_used_projects)
TIME_OUTSIDE_COUNTED = Cores(step=_counting_time_outside)
CHECK_IN_NOT_COUNTED = Cores(step=_comparing_windows_with_limits_alone)
TAINTS_FORGOTTEN = Cores(step=_forgetting_taints)
PORTIONS_ADDED_UP = Cores(finish=_adding_portions_up)
CLAIM_NOT_KEPT = Cores(finish=_claiming_nothing)
VICTIM_GONE_AT_ONCE = Cores(finish=_taking_victims_for_gone)
VICTIM_FIRST = Cores(step=_letting_victims_go_first)
FIXED_NOT_LOWERED = Cores(step=_keeping_what_was_guaranteed)
CHECKPOINT_TAKEN_BACK = Cores(step=_taking_checkpoints_back)
PASSING_TOO_LATE = Cores(finish=_ignoring_wishes(_running_half_as_long))
PROTECTED_FROM_PLACEMENT = Cores(finish=_protecting_from_the_placement_on)
DEVICE_COUNTED_WHOLE = Cores(finish=_counting_devices_whole)
LEVEL_IGNORED = Cores(finish=_ignoring_wishes(_anywhere))
AFFINITY_IGNORED = Cores(finish=_ignoring_wishes(_on_any_node))
WAIT_FOR_POOL_IGNORED = Cores(finish=_opening_pools_early)
ACCOUNT_FORGOTTEN = Cores(finish=_forgetting_accounts)
METER_RUNS_ON = Cores(finish=_letting_meters_run_on)
HELD_JOB_QUEUED = Cores(step=_leaving_held_jobs_queued)
REMOVAL_NOT_STORED = Cores(step=_removing_from_memory)
SILENCE_NEVER_NOTICED = Cores(stream=_never_doubting)
STORING_HOLDS = Cores(step=_storing_with_all_it_had)
STORED_TOLD_EARLY = Cores(agent=_telling_before_it_is_stored)
STORED_FORGOTTEN = Cores(step=_losing_what_is_stored)
CONNECTED_NEVER_SAID = Cores(agent=_never_connected)


def first_of_last_words() -> Cores:
    """Made anew for each fleet, as it remembers what it heard."""
    return Cores(step=_FirstOfLastWords())
