"""What must hold of the coordinator's cluster after every step, whatever happened; each check is a sentence."""

from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise

from coordinator.core.attempts.history import is_whole
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.deadlines import TaintDue
from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.candidates import Available
from coordinator.core.placement.node_capacity import UsedCapacity, total_capacity
from coordinator.core.placement.placement import fits
from coordinator.core.placement.request_classes import RequestClass
from coordinator.core.records import Attempt, Execution, Job
from coordinator.core.scheduling.run_limits import too_short
from coordinator.core.scheduling.windows import closed
from coordinator.core.sharing.standing import Tally
from coordinator.core.turn import plans
from muster.domain.fleet.quota import amounts_of
from muster.domain.gangs.plan import Goal
from muster.domain.ids import AttemptId, ExecutionId, GpuUuid, JobId, NodeId, execution_id
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import JobSpec, Resources
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import NOT_PLACED, TERMINAL, TRANSITIONS, JobPhase, State
from muster.domain.jobs.placing.taint import ends_at
from muster.domain.jobs.ports import node_ports
from tests.capacity_invariants import every_node_is_in_the_bin_of_what_it_has, the_capacity_is_what_is_left
from tests.eviction_invariants import (
    EvictionWitness,
    add_claims,
    an_eviction_is_told_as_one,
    only_who_is_queued_claims_seats,
    who_stays_leaves_room_for_claims,
)
from tests.outputs_invariants import a_job_ends_with_its_last_execution_and_says_why
from tests.portion_invariants import gpus_are_as_asked, no_gpu_is_given_beyond_what_it_has, portions_of, whole_of

LEGAL = {(before, after) for (before, _), after in TRANSITIONS.items()}


def validate(cluster: Cluster, now: datetime) -> None:
    """Hold all records, and the indexes over them, to the invariants; the first that is broken names its subject."""
    for job in cluster.jobs:
        validate_job(cluster, job)
    _nothing_is_left_of_what_was_dropped(cluster)
    _the_queue_is_the_queued_jobs_in_order(cluster)
    _every_queued_job_is_in_its_line_unless_it_is_paused(cluster)
    for capacities in (cluster.load.free.fresh(), cluster.load.unreserved.fresh(), cluster.load.empty.fresh()):
        every_node_is_in_the_bin_of_what_it_has(capacities)
        _nothing_fits_that_is_said_not_to(cluster, capacities, now)
    _units_hold_and_want_what_their_jobs_do(cluster)
    seated = _seated(cluster)
    for node in cluster.nodes:
        members = seated.get(node, [])
        _no_gpu_is_given_twice(cluster, node, members)
        _gpus_are_of_the_kind_that_was_asked_for(cluster, node, members)
        _no_port_is_given_twice(cluster, node, members)
        _a_job_that_has_its_nodes_for_itself_shares_none(cluster, node, members)
        _used_capacity_is_what_live_executions_hold(cluster, node, members)
        _a_plan_lists_exactly_what_it_should(cluster, node, members)
        the_capacity_is_what_is_left(cluster, node)
        who_stays_leaves_room_for_claims(cluster, node)
        _what_taints_end_is_looked_at_in_time(cluster, node, members)


def validate_job(cluster: Cluster, name: JobId) -> None:
    """Hold one job with its attempts and executions to the invariants."""
    job = cluster.jobs[name]
    for number in range(1, job.attempt + 1):
        key = AttemptId(name, number)
        if not is_whole(job, number):
            assert list(cluster.gangs.members(key)) == [], f"{key} is old and still at hand"
            continue
        attempt, members = cluster.attempts[key], list(cluster.gangs.members(key))
        _ranks_are_a_permutation(job, attempt, members)
        _a_gang_is_placed_whole_or_not_at_all(attempt, members)
        _it_waits_while_there_is_a_reason(job, attempt, members)
        only_who_is_queued_claims_seats(attempt, members)
        an_eviction_is_told_as_one(job, attempt)
        _nothing_is_released_before_all_are_armed(attempt, members)
        _deadlines_do_not_slide(job, attempt)
        _the_tally_equals_the_real_states(cluster, key, members)
        for member in members:
            _its_past_follows_the_table(member)
            _it_has_what_it_asked_for(job, member)
    a_job_ends_with_its_last_execution_and_says_why(cluster, job)
    _names_and_keys_lead_to_it(cluster, job)
    _its_project_is_there_while_it_goes_on(cluster, job)


def fits_into_its_nodes(cluster: Cluster) -> None:
    """No node has given away more than it has; holds where inventories do not shrink."""
    for name, node in cluster.nodes.items():
        used, everything = cluster.load.used(name), total_capacity(node, cluster.records.pools.values())
        assert used.cpu_millis <= everything.cpu_millis, f"{name} has given away more CPUs than it has"
        assert used.memory <= everything.memory, f"{name} has given away more memory than it has"
        assert used.gpus | set(used.portions) <= {gpu.uuid for gpu in everything.gpus}, (
            f"{name} has given away GPUs it does not have"
        )


class Witness:
    """Remembers what it has seen, and objects when the past changes."""

    def __init__(self) -> None:
        self._exits: dict[ExecutionId, Exit] = {}
        self._ends: dict[ExecutionId, State] = {}
        self._seats: dict[ExecutionId, tuple[NodeId, tuple[GpuUuid, ...]]] = {}
        self._goals: dict[AttemptId, Goal] = {}
        self._deadlines: dict[AttemptId, datetime] = {}
        self._evictions = EvictionWitness()

    def see(self, cluster: Cluster) -> None:
        """Compare with what was seen before."""
        self._evictions.see(cluster)
        for execution in cluster.executions.values():
            self._recall(execution)
        for key, attempt in cluster.attempts.items():
            if attempt.goal is not None:
                assert self._goals.get(key, Goal.PREPARE) <= attempt.goal, f"the order for {key} was taken back"
                self._goals[key] = attempt.goal
            if attempt.deadline is not None:
                first = self._deadlines.setdefault(key, attempt.deadline)
                assert attempt.deadline == first, f"the check-in deadline of {key} slid"

    def _recall(self, execution: Execution) -> None:
        name = execution.id
        if name in self._exits or execution.exit is not None:
            assert execution.exit == self._exits.setdefault(name, execution.exit or Exit(code=0)), f"{name}: exit"
        if name in self._ends or execution.state in TERMINAL:
            assert execution.state is self._ends.setdefault(name, execution.state), f"{name} left its last state"
        if execution.node is not None:
            seat = (execution.node, execution.gpus)
            assert seat == self._seats.setdefault(name, seat), f"{name} changed its seat"


def _its_project_is_there_while_it_goes_on(cluster: Cluster, job: Job) -> None:
    project = cluster.projects.get(job.spec.project)
    assert project is not None or job.ended_at is not None, f"{job.id} goes on in a project that is not there"
    assert project is None or project.created_at <= job.submitted_at, f"{job.id} is older than its project"


def _ranks_are_a_permutation(job: Job, attempt: Attempt, members: list[Execution]) -> None:
    assert [member.rank for member in members] == list(range(job.spec.size)), f"ranks of {job.id}"
    expected = [execution_id(job.id, attempt.number, rank) for rank in range(job.spec.size)]
    assert [member.id for member in members] == expected, f"ids of {job.id}"


def _a_gang_is_placed_whole_or_not_at_all(attempt: Attempt, members: list[Execution]) -> None:
    placed = {member.node is not None for member in members}
    assert len(placed) == 1, f"{attempt.job} is placed in part"
    assert placed == {attempt.placed_at is not None}, f"{attempt.job}: its seats and its time of placement differ"
    for state in NOT_PLACED:
        there = {member.state is state for member in members}
        assert len(there) == 1, f"{attempt.job} is {state} in part"
        assert attempt.placed_at is None or there == {False}, f"{attempt.job} is placed and {state} at once"


def _it_waits_while_there_is_a_reason(job: Job, attempt: Attempt, members: list[Execution]) -> None:
    """Only what may be placed is in the queue, and all of that is."""
    kinds = [reason.kind for reason in job.holds]
    assert len(set(kinds)) == len(kinds), f"{job.id} waits twice for the same: {kinds}"
    state = members[0].state
    if attempt.number == job.attempt and state in NOT_PLACED:
        assert (state is State.WAITING) == bool(job.holds), f"{job.id} is {state}; what keeps it is {kinds}"
        assert (attempt.queued_since is None) == bool(job.holds), f"{job.id}: its time in the queue"
    assert attempt.queued_for >= timedelta(), f"{job.id} was in the queue for less than no time"


def _nothing_is_released_before_all_are_armed(attempt: Attempt, members: list[Execution]) -> None:
    assert attempt.goal is not Goal.RUN or attempt.released_at is not None, f"{attempt.job} runs without release"
    if attempt.checked_in_at is not None:
        assert all(State.CHECKED_IN in member.times for member in members), f"{attempt.job}: armed before check-in"
    if attempt.released_at is not None:
        assert attempt.checked_in_at is not None, f"{attempt.job} was released before it was armed"
        assert all(State.ARMED in member.times for member in members), f"{attempt.job}: released before all were armed"


def _deadlines_do_not_slide(job: Job, attempt: Attempt) -> None:
    if attempt.placed_at is not None:
        assert attempt.deadline == attempt.placed_at + job.spec.armed_within, f"deadline of {job.id}"


def _the_tally_equals_the_real_states(cluster: Cluster, key: AttemptId, members: list[Execution]) -> None:
    real = Counter(member.state for member in members)
    counted = {state: count for state, count in cluster.gangs.tally(key).items() if count}
    assert counted == dict(real), f"tally of {key}"


def _its_past_follows_the_table(member: Execution) -> None:
    past = list(member.times)
    assert past[0] in NOT_PLACED, f"{member.id} was never queued, and never waited"
    assert past[0] is State.QUEUED or member.node is None or past[1] is State.QUEUED, f"{member.id} was never queued"
    assert past[-1] is member.state, f"{member.id} is {member.state}, but last entered {past[-1]}"
    for step in pairwise(past):
        assert step in LEGAL, f"{member.id} went {step[0]} → {step[1]}"


def _it_has_what_it_asked_for(job: Job, member: Execution) -> None:
    wanted = job.spec.role_of(member.rank).resources.gpus if member.node is not None else 0
    assert len(set(member.gpus)) == len(member.gpus) == wanted, f"{member.id} has {member.gpus}, asked for {wanted}"
    assert member.exit is None or State.RUNNING in member.times or State.STOPPING in member.times, f"exit {member.id}"


def _names_and_keys_lead_to_it(cluster: Cluster, job: Job) -> None:
    newest = cluster.job_index.newest_named(job.spec.name)
    assert newest is not None, f"the name of {job.id} leads nowhere"
    assert cluster.jobs[newest].spec.name == job.spec.name, f"the name of {job.id} leads to another"
    assert cluster.jobs[newest].sequence >= job.sequence, f"the name of {job.id} leads to an older job"
    if job.idempotency_key:
        assert cluster.job_of_key(job.idempotency_key) == job


def _nothing_is_left_of_what_was_dropped(cluster: Cluster) -> None:
    assert {execution.job for execution in cluster.executions.values()} <= set(cluster.jobs)
    assert {job for job, _ in cluster.attempts} == set(cluster.jobs)
    assert set(cluster.queue.refused) <= set(cluster.jobs)


def _the_queue_is_the_queued_jobs_in_order(cluster: Cluster) -> None:
    waiting = [job for job in cluster.jobs.values() if cluster.phase(job.id) is JobPhase.QUEUED]
    in_order = sorted(waiting, key=lambda job: (job.job_class.order, -job.spec.priority, job.sequence))
    assert list(cluster.queue) == in_order, "the queue is not the queued jobs in order"
    kept = cluster.load.reservation
    assert kept is None or kept.job in {job.id for job in waiting}, "something is kept for a job that does not wait"
    positions = [cluster.queue.position(job.id) for job in in_order]
    assert positions == list(range(1, len(in_order) + 1)), "positions in the queue"


def _every_queued_job_is_in_its_line_unless_it_is_paused(cluster: Cluster) -> None:
    queue, lines = cluster.queue, cluster.queue.lines
    heads: dict[tuple[str, RequestClass], JobId] = {}
    attempts = {job.id: cluster.newest_attempt(job.id) for job in queue}
    waiting = [job for job in queue if attempts[job.id].not_before is None and attempts[job.id].claim is None]
    for job in waiting:
        heads.setdefault((job.spec.project, queue.request_class(job.id)), job.id)
    for (project, request_class), name in heads.items():
        first = lines.first(project, request_class)
        assert first is not None, f"{name} waits and is in no line"
        paused = cluster.newest_attempt(first[1]).not_before is not None
        assert first[1] == name or paused, f"{first[1]} is first in the line of {name}"


def _nothing_fits_that_is_said_not_to(cluster: Cluster, capacities: Capacities, now: datetime) -> None:
    """Look at jobs of one role: not every way to seat several is tried, so less room may let them find seats."""
    tried: set[RequestClass] = set()
    for job in (each for each in cluster.queue if len(each.spec.roles) == 1):
        request_class = cluster.queue.request_class(job.id)
        if request_class not in tried and request_class.fails(capacities):
            closed_now = _closed(cluster, job.spec, now)
            short = too_short(cluster, job.spec)
            pools = tuple(pool for pool in request_class.pools or capacities.pools if pool not in short)
            offered = Available(capacities=capacities, pools=pools, closed=closed_now)
            assert not fits(job.spec, offered), f"{job.id} fits and is not tried"
        tried.add(request_class)


def _closed(cluster: Cluster, spec: JobSpec, now: datetime) -> frozenset[NodeId]:
    """Nodes that windows close to a job; a window that is over still does, until its deadline has come."""
    found: set[NodeId] = set()
    for window in cluster.load.windows:
        if closed(window, spec, min(now, window.ends - timedelta(microseconds=1))):
            found |= set(cluster.load.windows.nodes_of(window))
    return frozenset(found)


def _units_hold_and_want_what_their_jobs_do(cluster: Cluster) -> None:
    load = cluster.unit_load
    sums: dict[tuple[str, str], Counter[Tally]] = {}
    running: dict[str, set[JobId]] = {}
    for execution in cluster.executions.values():
        job = cluster.jobs[execution.job]
        gpus = amounts_of(job.spec, execution.rank).gpus
        for unit in load.units.get(job.spec.project).line():
            counted = sums.setdefault((unit.name, load.pool_of(job)), Counter())
            if execution.state is State.QUEUED:
                counted[Tally.WAITING] += gpus
            elif _live(execution):
                counted[Tally.HELD] += gpus
                counted[Tally.LEAVING] += gpus * (execution.state is State.STOPPING)
                counted[Tally.FIXED] += gpus * (job.job_class is JobClass.GUARANTEED)
                running.setdefault(unit.name, set()).add(job.id)
    add_claims(cluster, sums)
    for pool in load.units.pools:
        for unit in load.units:
            standing = load.units.in_pool(pool).get(unit.name)
            for tally in Tally:
                found = 0 if standing is None else getattr(standing, tally)[0]
                wanted = sums.get((unit.name, pool), Counter())[tally]
                assert found == wanted, f"{unit.name}: {tally} in {pool} is {found}, and its jobs come to {wanted}"
    for unit in load.units:
        assert unit.running == len(running.get(unit.name, ())), f"{unit.name}: jobs that hold something"


def _seated(cluster: Cluster) -> dict[NodeId, list[Execution]]:
    """The executions that their nodes still have to do with, in one walk over all."""
    seated: dict[NodeId, list[Execution]] = {}
    for execution in cluster.executions.values():
        if execution.node is not None and _is_listed(execution):
            seated.setdefault(execution.node, []).append(execution)
    return seated


def _is_listed(execution: Execution) -> bool:
    return execution.state not in TERMINAL or not execution.log_complete or execution.stores or execution.stores_again


def _no_gpu_is_given_twice(cluster: Cluster, node: NodeId, seated: list[Execution]) -> None:
    held = ((_need(cluster, each), each.gpus) for each in seated if _live(each))
    no_gpu_is_given_beyond_what_it_has("given", node, cluster.nodes[node].inventory.gpus, held)


def _need(cluster: Cluster, execution: Execution) -> Resources:
    return cluster.jobs[execution.job].spec.role_of(execution.rank).resources


def _a_job_that_has_its_nodes_for_itself_shares_none(cluster: Cluster, node: NodeId, seated: list[Execution]) -> None:
    live = [cluster.jobs[execution.job] for execution in seated if _live(execution)]
    alone = any(job.spec.exclusive for job in live)
    assert not alone or len({job.id for job in live}) == 1, f"{node} is shared, though a job has it for itself"


def _gpus_are_of_the_kind_that_was_asked_for(cluster: Cluster, node: NodeId, members: list[Execution]) -> None:
    there = {gpu.uuid: gpu for gpu in cluster.nodes[node].inventory.gpus}
    for member in members:
        given = [there[gpu] for gpu in member.gpus if gpu in there]
        gpus_are_as_asked(member.id, _need(cluster, member), given)


def _no_port_is_given_twice(cluster: Cluster, node: NodeId, seated: list[Execution]) -> None:
    given = [port for execution in seated if _live(execution) for port in _ports(cluster, execution)]
    assert len(set(given)) == len(given), f"ports of {node} given twice: {given}"


def _ports(cluster: Cluster, execution: Execution) -> frozenset[int]:
    spec = cluster.jobs[execution.job].spec
    return node_ports(spec, spec.role_of(execution.rank), execution.rank)


def _used_capacity_is_what_live_executions_hold(cluster: Cluster, node: NodeId, seated: list[Execution]) -> None:
    expected = UsedCapacity()
    for execution in seated:
        if _live(execution):
            need = _need(cluster, execution)
            expected.gpus.update(whole_of([(need, execution.gpus)]))
            expected.cpu_millis += need.cpu_millis
            expected.memory += need.memory or 0
            expected.disk += need.disk or 0
            expected.executions.add(execution.id)
            expected.ports.update(_ports(cluster, execution))
            expected.exclusive = cluster.jobs[execution.job].spec.exclusive
    expected.portions = portions_of((_need(cluster, each), each.gpus) for each in seated if _live(each))
    assert cluster.load.used(node) == expected, f"used capacity of {node}"


def _a_plan_lists_exactly_what_it_should(cluster: Cluster, node: NodeId, seated: list[Execution]) -> None:
    """Live executions, and ended ones whose log the coordinator does not have in full."""
    expected = {execution.id: plans.goal(cluster, execution) for execution in seated}
    assert {each.id: plans.goal(cluster, each) for each in cluster.load.planned(node)} == expected, f"plan of {node}"
    assert all(cluster.load.is_planned(node, execution) for execution in expected), f"plan of {node}"


def _what_taints_end_is_looked_at_in_time(cluster: Cluster, node: NodeId, seated: list[Execution]) -> None:
    for execution in filter(_live, seated):
        if cluster.attempts[execution.attempt_id].goal is Goal.STOP:
            continue
        tolerations = cluster.jobs[execution.job].spec.tolerations
        ends = (ends_at(taint, tolerations) for taint in cluster.nodes[node].taints)
        for end in filter(None, ends):
            look = cluster.deadlines.planned(TaintDue(node=node))
            assert look is not None, f"nobody looks at {execution.id}, which the taints of {node} end"
            assert look <= max(end, cluster.started_at), f"{execution.id} outlasts the time of a taint of {node}"


def _live(execution: Execution) -> bool:
    return execution.state not in NOT_PLACED and execution.state not in TERMINAL
