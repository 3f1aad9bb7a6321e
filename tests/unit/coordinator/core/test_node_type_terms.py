"""Types of nodes that the terms of a project allow: who is refused, and where its jobs go."""

from typing import Any

import pytest

from coordinator.core.answers import Accepted, RefusalCause, Refused
from muster.domain.fleet.quota import QuotaTerms, QuotaUnit, UnitKind, UnitTerms
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec
from tests.builders import World, inventory, report, spec

STARTED = (Stage.PREPARED, Stage.ARMED, Stage.RUNNING)
TYPES = {"n1": "t4", "n2": "v100", "n3": "dgx", "n4": None}


def fleet() -> World:
    """A node of each type with two GPUs, and one that says no type; students may use the first two."""
    w = World(projects=("default", "students"))
    for name, kind in TYPES.items():
        w.connect(name, inventory(name, 2, labels={"type": kind} if kind else {}))
    w.promise("students", types=("t4", "v100"))
    return w


def of_students(*types: str, **fields: Any) -> JobSpec:
    return spec(1, gpus=2, project="students", node_types=types, **fields)


def nodes(w: World, *jobs: JobId) -> list[str | None]:
    return [w.seats(job)[0] for job in jobs]


def kept(w: World) -> tuple[JobId, list[str]] | None:
    """The head of the queue, and the nodes on which seats are kept for it."""
    found = w.cluster.load.reservation
    return None if found is None else (found.job, list(found.nodes))


def test_jobs_of_a_project_go_only_to_nodes_of_its_types() -> None:
    w = fleet()

    jobs = [w.submit(of_students()) for _ in range(3)]

    assert nodes(w, *jobs) == ["n1", "n2", None]
    assert nodes(w, w.submit(spec(1, gpus=2)), w.submit(spec(1, gpus=2))) == ["n3", "n4"]


@pytest.mark.parametrize("anyway", [False, True], ids=["plainly", "for the queue anyway"])
def test_a_job_that_names_another_type_is_refused_with_the_nearest_one(anyway: bool) -> None:
    w = fleet()

    answer = w.try_submit(of_students("v100", "v10"), queue_anyway=anyway)

    assert isinstance(answer, Refused)
    assert (answer.cause, answer.message) == (
        RefusalCause.INVALID,
        "node_type: project students may not use nodes of type v10, only t4, v100; did you mean v100?",
    )


def test_a_job_that_names_one_of_them_goes_there() -> None:
    w = fleet()
    assert nodes(w, w.submit(of_students("v100"))) == ["n2"]


def test_a_job_is_stored_as_it_was_asked_for_beside_what_its_project_makes_of_it() -> None:
    w = fleet()
    silent, named, other = w.submit(of_students()), w.submit(of_students("t4")), w.submit(spec(1))
    kept = [w.cluster.jobs[job] for job in (silent, named, other)]

    assert [job.spec.node_types for job in kept] == [("t4", "v100"), ("t4",), ()]
    assert [job.submitted for job in kept] == [of_students(), None, None]


def test_seats_are_kept_for_the_head_only_on_nodes_of_types_that_its_project_may_use_by_now() -> None:
    w = fleet()
    for node in TYPES:
        w.tell_all(w.submit(spec(1, gpus=1, exclude_nodes=tuple(TYPES.keys() - {node}))), *STARTED)
    head = w.submit(of_students())
    assert kept(w) == (head, ["n1"])

    w.promise("students", types=("v100",))
    assert kept(w) == (head, ["n2"])


def test_a_job_that_no_node_of_these_types_could_hold_is_refused() -> None:
    w = fleet()
    w.connect("n5", inventory("n5", 8, labels={"type": "dgx"}))

    assert isinstance(w.try_submit(spec(1, gpus=8, project="students")), Refused)
    assert isinstance(w.try_submit(spec(1, gpus=8)), Accepted)


def test_the_types_of_a_department_hold_where_its_project_says_none() -> None:
    w = fleet()
    terms = UnitTerms(everywhere=QuotaTerms(types=("dgx",)))
    w.change_units(QuotaUnit(name="school", kind=UnitKind.DEPARTMENT, terms=terms))
    w.promise("students", department="school")
    assert nodes(w, w.submit(of_students())) == ["n3"]

    w.promise("students", department="school", types=("t4",))
    assert nodes(w, w.submit(of_students())) == ["n1"]


@pytest.mark.parametrize("restarts", [False, True], ids=["at one go", "over a restart of the coordinator"])
def test_queued_jobs_that_name_no_type_follow_their_project_and_the_others_keep_theirs(restarts: bool) -> None:
    w = fleet()
    running = [w.running(of_students(kind)) for kind in ("t4", "v100")]
    silent, named = w.submit(of_students()), w.submit(of_students("v100"))
    assert nodes(w, silent, named) == [None, None]
    if restarts:
        reports = {w.rank(job, 0).node: report(w.rank(job, 0).id, Stage.RUNNING) for job in running}
        w.restart()
        for name in TYPES:
            w.connect(name, reports=[each for node, each in reports.items() if node == name])

    w.promise("students", types=("dgx",))
    assert nodes(w, silent, named) == ["n3", None]


def test_queued_jobs_may_go_anywhere_once_nothing_is_said_of_types() -> None:
    w = fleet()
    for kind in ("t4", "v100"):
        w.running(of_students(kind))
    silent = w.submit(of_students())

    w.promise("students")
    assert nodes(w, silent) == ["n3"]


def test_the_same_key_is_the_same_submit_whatever_types_the_project_has_by_now() -> None:
    w = fleet()
    first = w.submit(of_students(), idempotency_key="k")
    w.promise("students", types=("dgx",))

    answer = w.try_submit(of_students(), idempotency_key="k")

    assert isinstance(answer, Accepted)
    assert answer.job.id == first


@pytest.mark.parametrize(
    ("types", "why"),
    [
        ((), "types must name one type of nodes at least"),
        (tuple(f"t{number}" for number in range(17)), "types names 17, and 16 are the most"),
        (("",), 'types: "" is empty'),
    ],
)
def test_types_that_cannot_be_meant_say_why(types: tuple[str, ...], why: str) -> None:
    assert [fault.partition(";")[0] for fault in QuotaTerms(types=types).faults()] == [why]


def test_types_hold_in_all_pools_alike() -> None:
    terms = UnitTerms(pools={"h100": QuotaTerms(types=("dgx",))})
    assert list(terms.faults()) == ["pool h100: types holds in all pools, so it cannot be set for one"]
