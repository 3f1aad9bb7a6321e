"""Nodes that a job needs or would rather have, by what their labels say."""

from collections import Counter
from typing import Any

import pytest

from coordinator.core.answers import Refused
from coordinator.core.events import JobSubmitted
from coordinator.views.explain import explain
from muster.domain.ids import JobId, NodeId
from muster.domain.jobs.job import JobSpec, Packing
from muster.domain.jobs.placing.affinity import Affinity, LabelExpression, LabelOperator, PreferredTerm
from tests.builders import World, inventory, spec

LABELS = {
    "a": {"zone": "east", "gen": "3", "rack": "r1"},
    "b": {"zone": "west", "gen": "4", "rack": "r2"},
    "c": {"zone": "west", "gen": "five"},
}


@pytest.fixture
def world() -> World:
    found = World()
    for node, labels in LABELS.items():
        found.connect(node, inventory(node, 4, labels=labels))
    return found


def compared(key: str, operator: str, *values: str) -> LabelExpression:
    return LabelExpression(key=key, operator=LabelOperator(operator), values=values)


def needs(*terms: tuple[LabelExpression, ...], **fields: Any) -> JobSpec:
    """A job of one whole node, of which one of these terms must hold."""
    return spec(1, gpus=4, affinity=Affinity(required=terms), **fields)


def rather(*terms: PreferredTerm, **fields: Any) -> JobSpec:
    return spec(1, gpus=4, affinity=Affinity(preferred=terms), **fields)


def why(world: World, job: JobId) -> dict[NodeId, str]:
    return {refusal.node: refusal.reason for refusal in explain(world.cluster, job, world.now).refusals}


def placed(world: World, wanted: JobSpec) -> list[str | None]:
    """All nodes that jobs of this kind fill, in order."""
    jobs = [world.submit(wanted, queue_anyway=True) for _ in LABELS]
    return [seat for job in jobs for seat in world.seats(job) if seat is not None]


@pytest.mark.parametrize(
    ("expression", "nodes"),
    [
        (compared("zone", "In", "west"), ["b", "c"]),
        (compared("zone", "In", "east", "north"), ["a"]),
        (compared("rack", "NotIn", "r1"), ["b", "c"]),
        (compared("rack", "Exists"), ["a", "b"]),
        (compared("rack", "DoesNotExist"), ["c"]),
        (compared("gen", "Gt", "3"), ["b"]),
        (compared("gen", "Lt", "4"), ["a"]),
        (compared("gen", "Gt", "-1"), ["a", "b"]),
    ],
)
def test_only_nodes_are_taken_for_which_an_expression_holds(
    world: World, expression: LabelExpression, nodes: list[str]
) -> None:
    assert placed(world, needs((expression,))) == nodes


def test_all_expressions_of_one_of_the_terms_must_hold(world: World) -> None:
    west, old = compared("zone", "In", "west"), compared("gen", "Lt", "4")

    assert placed(world, needs((west, old))) == []
    assert placed(world, needs((west, compared("rack", "Exists")), (old,))) == ["a", "b"]


def test_why_says_of_each_node_which_expression_does_not_hold(world: World) -> None:
    job = world.submit(
        needs((compared("rack", "In", "r2"), compared("gen", "Gt", "4")), (compared("rack", "Exists"),)),
        queue_anyway=True,
    )
    other = world.submit(needs((compared("rack", "In", "r2"), compared("gen", "Gt", "4"))), queue_anyway=True)

    assert world.seats(job) == ["a"]
    assert why(world, other) == {
        "a": "does not match affinity.required[0]: rack must be r2 and is r1",
        "b": "does not match affinity.required[0]: gen must be a number above 4 and is 4",
        "c": "does not match affinity.required[0]: rack must be r2 and is not there",
    }


def test_why_says_it_of_each_term_and_counts_the_terms_that_are_too_many_to_say(world: World) -> None:
    never = [(compared("zone", "NotIn", "east", "west"),), (compared("zone", "DoesNotExist"),)]
    job = world.submit(needs(*never, *[(compared("gen", "Lt", "0"),)] * 3), queue_anyway=True)

    assert why(world, job)[NodeId("a")] == (
        "does not match affinity.required[0]: zone must not be east or west and is east; nor [1]: zone must not be "
        "there and is east; nor [2]: gen must be a number below 0 and is 3; nor 2 others"
    )


def test_a_job_for_which_no_node_can_ever_do_is_refused_with_what_was_probably_meant(world: World) -> None:
    def refusal(*terms: tuple[LabelExpression, ...]) -> str:
        (answer,) = world.turn(JobSubmitted(job=JobId("x"), spec=needs(*terms)))
        assert isinstance(answer, Refused)
        return answer.message

    known = (compared("zone", "In", "west"), compared("gen", "Gt", "9"))

    assert refusal((compared("rakc", "Exists"),)).endswith("; no node has the label rakc; did you mean rack?")
    assert refusal((compared("zone", "In", "wset"),)).endswith("; no node has the label zone=wset; did you mean west?")
    assert refusal((compared("zone", "In", "x", "y"),)).endswith(
        "; no node has the label zone=x or another of these 2 values"
    )
    assert refusal(known, (compared("rakc", "Exists"),)).endswith("1 execution at once; 0 fit")
    (told,) = world.turn(JobSubmitted(job=JobId("x"), spec=needs(known)))
    assert isinstance(told, Refused)
    assert [refused.node for refused in told.refusals] == ["a", "b", "c"]


def test_a_job_that_waits_for_a_label_is_told_that_no_node_has_it_and_goes_as_soon_as_one_does(world: World) -> None:
    job = world.submit(needs((compared("disk", "In", "nvme"),)), queue_anyway=True)
    assert explain(world.cluster, job, world.now).summary.endswith("; no node has the label disk")

    world.connect("d", inventory("d", 4, labels={"disk": "nvme"}))

    assert world.seats(job) == ["d"]


def test_nodes_are_filled_first_that_lack_the_least_of_what_is_preferred(world: World) -> None:
    west = PreferredTerm(weight=10, all=(compared("zone", "In", "west"),))
    third = PreferredTerm(weight=20, all=(compared("gen", "In", "3"),))
    racked = PreferredTerm(weight=1, all=(compared("rack", "Exists"),))

    assert placed(world, rather(west, third, racked)) == ["a", "b", "c"]


def test_what_is_preferred_comes_before_few_nodes(world: World) -> None:
    """One node would hold both, but the preferred one has room for one only; the other is in the same zone."""
    world.submit(spec(1, gpus=3, node_labels={"rack": "r2"}))
    job = world.submit(
        spec(2, gpus=1, affinity=Affinity(preferred=(PreferredTerm(all=(compared("rack", "In", "r2"),)),)))
    )

    assert world.seats(job) == ["b", "c"]


def test_spread_fills_preferred_nodes_first_as_well(world: World) -> None:
    term = PreferredTerm(all=(compared("zone", "In", "west"),))
    job = world.submit(spec(8, gpus=1, packing=Packing.SPREAD, affinity=Affinity(preferred=(term,))))

    assert Counter(world.seats(job)) == {"b": 4, "c": 4}


def test_jobs_that_differ_in_their_affinity_alone_are_tried_each_by_itself(world: World) -> None:
    first = world.submit(needs((compared("zone", "In", "north"),)), queue_anyway=True)
    second = world.submit(needs((compared("zone", "In", "east"),)))

    assert (world.seats(first), world.seats(second)) == ([None], ["a"])


def test_what_is_kept_for_the_head_is_given_up_when_its_labels_do_no_longer_do(world: World) -> None:
    """The reservation stands on `b`; as its label goes, the head waits for `c`."""
    holding = [world.submit(spec(1, gpus=4, node_labels={"gen": value})) for value in ("4", "five")]
    head = world.submit(needs((compared("zone", "In", "west"),)))
    assert [world.seats(each) for each in (*holding, head)] == [["b"], ["c"], [None]]

    world.connect("b", inventory("b", 4, labels={"zone": "east"}))
    reservation = world.cluster.load.reservation

    assert reservation is not None
    assert list(reservation.nodes) == ["c"]
