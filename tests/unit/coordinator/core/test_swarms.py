"""Which nodes of an attempt fetch the same, as each of them is told."""

from dataclasses import replace

from coordinator.core.turn.swarms import restores, swarm_pass, swarms_for, wants
from muster.domain.data.job_input import JobInput
from muster.domain.data.sharing.swarm_pass import SwarmPass
from muster.domain.fleet.features import ALL_FEATURES, SWARM
from muster.domain.ids import AttemptId, JobId, NodeId
from muster.domain.jobs.image import shared_as
from tests.builders import World, spec
from tests.unit.coordinator.core.saving import fail, part, save_all, saving

URL = "https://example.org/base.tar"
OTHER = "https://example.org/other.tar"


def gang(w: World) -> AttemptId:
    """A job of two roles on three nodes: two want the same file, all want another one."""
    whole = spec(name="with-inputs", max_per_node=1)
    [role] = whole.roles
    base, other = JobInput(name="base", url=URL), JobInput(name="other", url=OTHER)
    roles = (
        replace(role, name="first", count=2, inputs=(base, other)),
        replace(role, name="second", count=1, inputs=(other,)),
    )
    job: JobId = w.submit(replace(whole, roles=roles))
    return AttemptId(job, 1)


def told(w: World, attempt: AttemptId, wanted: str, node: str) -> SwarmPass:
    swarms = swarms_for(w.cluster, attempt, wanted)
    return swarm_pass(w.cluster, attempt, wanted, swarms, NodeId(node))


def test_nodes_whose_role_wants_the_same_are_one_swarm() -> None:
    w = World(("a", 8), ("b", 8), ("c", 8))
    attempt = gang(w)
    placed = [member.node for member in w.cluster.gangs.members(attempt)]
    of_both, of_all = told(w, attempt, URL, placed[0] or ""), told(w, attempt, OTHER, placed[2] or "")
    assert [each.node for each in of_both.members] == placed[:2]
    assert [each.node for each in of_all.members] == placed
    assert told(w, attempt, URL, placed[1] or "") == of_both
    assert told(w, attempt, URL, placed[2] or "") == SwarmPass()
    assert len(of_both.key) == 32
    assert of_both.key != of_all.key


def test_an_agent_that_gives_no_pieces_is_in_no_swarm() -> None:
    w = World(("a", 8), ("b", 8), ("c", 8))
    w.connect("c", features=ALL_FEATURES - {SWARM})
    attempt = gang(w)
    assert {each.node for each in told(w, attempt, OTHER, "a").members} == {"a", "b"}
    assert told(w, attempt, OTHER, "c") == SwarmPass()


def test_a_role_wants_its_files_and_trees_and_nothing_else() -> None:
    [role] = spec(name="x").roles
    role = replace(role, inputs=(JobInput(name="base", url=URL),))
    assert wants(role, URL)
    assert not wants(role, OTHER)


def test_a_role_wants_its_image_and_no_other() -> None:
    [role] = spec(name="x").roles
    assert wants(replace(role, image="team/app:1"), shared_as("team/app:1"))
    assert not wants(replace(role, image="team/app:1"), shared_as("team/app:2"))
    assert not wants(replace(role, image=None), shared_as(""))


def test_nodes_that_restore_the_part_of_the_first_rank_are_one_swarm_and_own_parts_are_in_none() -> None:
    w = World(("a", 8), ("b", 8))
    job = w.running(replace(saving(2), max_per_node=1))
    save_all(w, job, "step-100", 1)
    attempt = AttemptId(job, 1)
    own, first = (part("step-100", 1, rank).tree for rank in "10")
    assert told(w, attempt, first, "a") == SwarmPass()
    fail(w, job)
    assert {each.node for each in told(w, AttemptId(job, 2), first, "a").members} == {"a", "b"}
    assert told(w, AttemptId(job, 2), own, "a") == SwarmPass()
    assert not any(restores(w.cluster, each, own) for each in w.cluster.gangs.members(AttemptId(job, 2)))
