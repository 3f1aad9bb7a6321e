"""A fixed port is a resource of a node: nobody is placed where another has it, and a job waits until it is free."""

from coordinator.core.answers import Refused
from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.placement import NoFit, Placement, place, refusals
from muster.domain.gangs.plan import Stage
from muster.domain.jobs.job import JobSpec, Network, Packing
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import World, available, capacity, report, role, spec

HTTP = {"http": 29_631}


def nodes(wanted: JobSpec, *capacities: Capacity) -> list[str]:
    """The nodes by rank."""
    fit = place(wanted, available(*capacities))
    assert isinstance(fit, Placement), fit
    return [seat.node for seat in fit.seats]


def serving(count: int, *, network: Network = Network.HOST, packing: Packing = Packing.PACK) -> JobSpec:
    """A job whose executions all want the same port of their node."""
    return spec(roles=(role(count, ports=HTTP),), network=network, packing=packing)


def led(count: int, gpus: int = 0) -> JobSpec:
    """A job that fixes the port of its master."""
    return spec(roles=(role(count, gpus, ports={"master": 29_500}),))


def taken(name: str, *ports: int, gpus: int = 0) -> Capacity:
    return capacity(name, gpus, ports=frozenset(ports))


def test_pack_puts_each_execution_with_a_fixed_port_on_a_node_of_its_own() -> None:
    assert nodes(serving(3), capacity("a", 8), capacity("b", 8), capacity("c", 8)) == ["a", "b", "c"]


def test_executions_whose_ports_the_agent_chooses_share_a_node() -> None:
    assert nodes(spec(roles=(role(2, ports={"http": None}),)), capacity("a"), capacity("b")) == ["a", "a"]


def test_on_bridge_networking_the_number_is_the_containers_and_takes_nothing_of_the_node() -> None:
    assert nodes(serving(2, network=Network.BRIDGE), taken("a", 29_631), capacity("b")) == ["a", "a"]


def test_a_node_whose_port_is_taken_is_passed_over_although_it_is_like_the_others() -> None:
    assert nodes(serving(2), taken("a", 29_631), capacity("b"), taken("c", 29_632)) == ["b", "c"]


def test_a_gang_that_finds_the_port_on_too_few_nodes_does_not_fit_and_says_which_port() -> None:
    having = available(taken("a", 29_631), capacity("b"))
    fit = place(serving(2), having)

    assert isinstance(fit, NoFit)
    assert str(fit) == "needs room for 2 executions at once; 1 fits"
    assert [refusal.reason for refusal in refusals(serving(2), having)] == [
        "needs port 29631, which another execution there has",
        "has room for 1; for one more it needs port 29631, which another execution there has",
    ]


def test_a_fixed_master_counts_for_rank_0_alone() -> None:
    assert nodes(led(4, gpus=2), capacity("a", 8), capacity("b", 8)) == ["a", "a", "a", "a"]


def test_rank_0_goes_where_the_port_of_the_master_is_free_and_the_others_follow_in_order() -> None:
    assert nodes(led(3, gpus=8), taken("a", 29_500, gpus=8), capacity("b", 8), capacity("c", 8)) == ["b", "a", "c"]


def test_rank_0_is_seated_by_itself_where_the_others_find_no_port_for_it() -> None:
    assert nodes(led(3, gpus=2), taken("a", 29_500, gpus=4), capacity("b", 2)) == ["b", "a", "a"]


def test_a_master_without_a_free_port_fits_nowhere() -> None:
    having = available(taken("a", 29_500), taken("b", 29_500))
    fit = place(led(2), having)

    assert isinstance(fit, NoFit)
    assert (fit.wanted, fit.found) == (2, 1)
    assert {refusal.reason for refusal in refusals(led(2), having)} == {
        "needs port 29500, which another execution there has"
    }


def test_two_roles_that_want_the_same_port_are_on_different_nodes() -> None:
    wanted = spec(roles=(role(1, name="head", ports={"master": 80}), role(2, ports={"http": 80})))

    assert nodes(wanted, capacity("a"), capacity("b"), capacity("c")) == ["a", "b", "c"]


def test_spread_and_fixed_ports_go_together() -> None:
    assert nodes(serving(2, packing=Packing.SPREAD), taken("a", 29_631), capacity("b"), capacity("c")) == ["b", "c"]


def test_the_second_job_with_a_port_goes_to_another_node() -> None:
    w = World(("a", 0), ("b", 0))
    first, second = w.submit(serving(1)), w.submit(serving(1))

    assert [w.seats(first), w.seats(second)] == [["a"], ["b"]]


def test_a_job_waits_for_a_port_and_starts_once_it_is_free() -> None:
    w = World(("a", 0))
    first, second = w.running(serving(1)), w.submit(serving(1))
    assert w.phase(second) is JobPhase.QUEUED
    assert w.cluster.queue.refused[second] == "needs room for 1 execution at once; 0 fit"

    w.tell_all(first, Stage.EXITED)

    assert w.phase(second) is JobPhase.PREPARING


def test_jobs_that_pass_the_head_leave_it_the_port_for_which_it_waits() -> None:
    w = World(("a", 0), ("b", 0))
    first = w.running(serving(1))
    head, later = w.submit(serving(2)), w.submit(serving(1))
    assert [w.phase(head), w.phase(later)] == [JobPhase.QUEUED, JobPhase.QUEUED]

    w.tell_all(first, Stage.EXITED)

    assert [w.phase(head), w.phase(later)] == [JobPhase.PREPARING, JobPhase.QUEUED]


def test_jobs_that_differ_in_their_fixed_ports_alone_are_tried_each() -> None:
    w = World(("a", 0))
    w.running(serving(1))
    waiting = w.submit(serving(1))
    other = w.submit(spec(roles=(role(1, ports={"http": 29_632}),)))

    assert [w.phase(waiting), w.phase(other)] == [JobPhase.QUEUED, JobPhase.PREPARING]


def test_a_job_that_wants_its_port_more_often_than_there_are_nodes_is_refused_at_submit() -> None:
    w = World(("a", 0), ("b", 0))
    answer = w.try_submit(serving(3))

    assert isinstance(answer, Refused)
    assert answer.message == "the fleet is too small for it: needs room for 3 executions at once; 2 fit"
    assert answer.refusals[0].reason == (
        "has room for 1; for one more it needs port 29631, which another execution there has"
    )


def test_ports_are_given_away_still_after_a_restart_of_the_coordinator() -> None:
    w = World(("a", 0))
    job = w.running(serving(1))
    w.restart()
    w.connect("a", reports=[report(w.rank(job, 0).id, Stage.RUNNING)])

    assert w.phase(w.submit(serving(1))) is JobPhase.QUEUED
