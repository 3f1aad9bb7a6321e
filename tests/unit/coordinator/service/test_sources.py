"""Outputs of jobs as inputs of others: which ones, and why not."""

from dataclasses import replace
from datetime import timedelta

import pytest

from coordinator.core.cluster.job_index import Projects
from coordinator.service.data.sources import SourceSight, settled
from muster.domain.data.job_input import JobInput
from muster.domain.data.job_source import InputTree
from muster.domain.data.output_terms import OutputTerms
from muster.domain.data.outputs import STORING_OUTPUTS, UNWANTED_OUTPUTS, ExecutionOutputs, OutputsStage
from muster.domain.errors import ConflictError, InvalidJobError, UnknownNameError
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import JobSpec, Role
from tests.builders import World, spec


def stored(letter: str) -> ExecutionOutputs:
    return ExecutionOutputs(stage=OutputsStage.STORED, tree=letter * 64, size=90, files=1, bytes=7)


def ended(w: World, *left: ExecutionOutputs | None, code: int = 0, name: str = "train") -> JobId:
    """A job whose executions have ended, each with what it has left."""
    job = w.running(replace(spec(len(left)), name=name))
    for rank, each in enumerate(left):
        w.tell(job, rank, Stage.EXITED, exit=Exit(code=code), outputs=each)
    return job


def taking(source: str) -> JobSpec:
    return JobSpec(name="next", project="default", roles=(Role(inputs=(JobInput(name="base", source=source),)),))


def taken(w: World, source: str, seen: Projects = None) -> JobInput:
    [role] = settled(SourceSight(w.cluster, w.now, seen), taking(source)).roles
    return role.inputs[0]


def test_a_name_is_the_newest_job_of_that_name_that_has_succeeded() -> None:
    w = World(("a", 1))
    first = ended(w, stored("a"))
    second = ended(w, stored("b"))
    ended(w, stored("c"), code=1)

    found = taken(w, "train")
    assert (found.source, found.trees) == (f"job:{second}/worker-0", (InputTree(tree="b" * 64, size=90),))
    assert taken(w, f"job:{first}").trees == (InputTree(tree="a" * 64, size=90),)


def test_what_a_job_left_that_has_failed_is_taken_by_its_id() -> None:
    w = World(("a", 1))
    job = ended(w, stored("a"), code=1)
    assert taken(w, f"job:{job}/worker-0").trees == (InputTree(tree="a" * 64, size=90),)
    with pytest.raises(ConflictError, match=f"no job train of project default has succeeded; the newest, {job}, is"):
        taken(w, "train")


def test_of_several_executions_one_is_named_or_all_that_have_left_something() -> None:
    w = World(("a", 1))
    job = ended(w, stored("a"), None, stored("c"))

    assert taken(w, "train/worker-2").trees == (InputTree(tree="c" * 64, size=90),)
    every = taken(w, "train/*")
    assert every.source == f"job:{job}/*"
    assert [(each.below, each.tree[0]) for each in every.trees] == [("worker-0", "a"), ("worker-2", "c")]
    with pytest.raises(InvalidJobError, match=r"has 3 executions; say which, like train/worker-0, or train/\*"):
        taken(w, "train")
    with pytest.raises(InvalidJobError, match=r"worker-1 of job .* has left no outputs"):
        taken(w, "train/worker-1")
    with pytest.raises(UnknownNameError, match="has no execution worker-3; it has worker-0 to worker-2"):
        taken(w, "train/worker-3")


def test_a_job_that_still_runs_or_stores_is_waited_for_by_its_user() -> None:
    w = World(("a", 1))
    job = w.running(replace(spec(1), name="train"))
    with pytest.raises(ConflictError, match=r"inputs\.base: job .* has not ended \(running\)"):
        taken(w, f"job:{job}")
    w.tell(job, 0, Stage.EXITED, exit=Exit(code=0), outputs=STORING_OUTPUTS)
    with pytest.raises(ConflictError, match="is still storing its outputs"):
        taken(w, f"job:{job}")


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (ExecutionOutputs(stage=OutputsStage.ON_NODE, why="no depot"), "is on node a alone: no depot"),
        (ExecutionOutputs(stage=OutputsStage.LOST, why="the node is gone"), "is lost: the node is gone"),
    ],
)
def test_what_is_not_in_the_depot_is_refused_with_the_reason(left: ExecutionOutputs, said: str) -> None:
    w = World(("a", 1))
    ended(w, stored("a"), left)
    with pytest.raises(ConflictError, match=f"what rank 1 of job .* has left {said}"):
        taken(w, "train/*")


def test_what_was_kept_for_long_enough_is_refused_with_the_reason() -> None:
    w = World(("a", 1))
    one = replace(spec(1), name="train")
    keeping = replace(one, roles=(replace(one.roles[0], outputs=OutputTerms(keep=timedelta(days=1))),))
    job = w.running(keeping)
    w.tell(job, 0, Stage.EXITED, outputs=stored("a"))
    assert [each.tree for each in taken(w, "train").trees] == ["a" * 64]
    w.advance(24 * 3600)
    with pytest.raises(ConflictError, match=r"is not there any more: they were kept for 1d \(outputs\.keep\)"):
        taken(w, "train")


def test_what_nobody_wanted_counts_as_nothing() -> None:
    w = World(("a", 1))
    ended(w, UNWANTED_OUTPUTS, stored("b"))
    assert [each.below for each in taken(w, "train/*").trees] == ["worker-1"]


@pytest.mark.parametrize("source", ["train", "train/*"])
def test_a_job_that_has_left_nothing_is_refused(source: str) -> None:
    w = World(("a", 1))
    ended(w, None)
    with pytest.raises(InvalidJobError, match="has left no outputs"):
        taken(w, source)


def test_jobs_that_the_caller_may_not_look_at_are_as_if_they_were_not_there() -> None:
    w = World(("a", 1))
    job = ended(w, stored("a"))
    with pytest.raises(UnknownNameError, match=f"there is no job with the id {job}"):
        taken(w, f"job:{job}", seen=frozenset({"other"}))
    with pytest.raises(UnknownNameError, match="there is no job nobody in project default"):
        taken(w, "nobody")


def test_a_job_of_the_same_submit_has_no_outputs_yet() -> None:
    w = World(("a", 1))
    ended(w, stored("a"))
    with pytest.raises(InvalidJobError, match="train is submitted together with this job"):
        settled(SourceSight(w.cluster, w.now, None, ["train"]), taking("train"))


def test_what_a_client_says_of_trees_does_not_count() -> None:
    w = World(("a", 1))
    ended(w, stored("a"))
    forged = JobInput(name="base", source="train", trees=(InputTree(tree="f" * 64, size=90),))
    [role] = settled(
        SourceSight(w.cluster, w.now, None), replace(taking("train"), roles=(Role(inputs=(forged,)),))
    ).roles
    assert [each.tree for each in role.inputs[0].trees] == ["a" * 64]
