"""Agents say by words what they can; a job that needs a word goes only to nodes whose agent has said it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from coordinator.views.explain import explain
from muster.domain.data.checkpoint import JobCheckpoint
from muster.domain.data.job_input import JobInput
from muster.domain.data.output_terms import OutputTerms, StoredAfter
from muster.domain.fleet.features import (
    AZURE_STORES,
    BUCKETS,
    CHECKPOINT_STORES,
    INPUT_LISTS,
    INPUT_SECRETS,
    INPUTS,
    SECRETS,
    STORED_CHECKPOINTS,
    needed,
)
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.secret_use import SecretUse
from tests.builders import World, spec

LACKING = "has an agent that does not know secrets of the project; upgrade it"
LACKING_BOTH = "has an agent that does not know commands in other executions, secrets of the project; upgrade it"


def with_secrets(wanted: JobSpec) -> JobSpec:
    uses = (SecretUse(secret="wandb", directory="/muster/secrets/wandb"),)
    return replace(wanted, roles=tuple(replace(role, secrets=uses) for role in wanted.roles))


def an_older_agent(*nodes: str) -> World:
    w = World(*((node, 1) for node in nodes))
    w.connect(nodes[0], features=frozenset({"of-tomorrow"}))
    return w


def test_a_node_whose_agent_lacks_a_word_that_a_job_needs_is_passed_over() -> None:
    w = an_older_agent("a", "b")
    jobs = [w.submit(with_secrets(spec(1))), w.submit(spec(1))]

    assert [w.rank(job, 0).node for job in jobs] == ["b", "a"]


def test_why_says_what_the_agents_do_not_know() -> None:
    w = an_older_agent("a")
    job = w.submit(with_secrets(spec(1)), queue_anyway=True)

    assert w.phase(job) is JobPhase.QUEUED
    assert [refusal.reason for refusal in explain(w.cluster, job, w.now).refusals] == [LACKING]
    refused = w.try_submit(with_secrets(spec(1)))
    assert [refusal.reason for refusal in refused.refusals] == [LACKING]  # type: ignore[union-attr]  # it was refused


def test_commands_in_the_gang_need_a_word_of_their_own() -> None:
    w = an_older_agent("a")
    wanted = replace(spec(1), gang_commands=True)
    assert w.phase(w.submit(wanted, queue_anyway=True)) is JobPhase.QUEUED
    refused = w.try_submit(with_secrets(wanted))
    assert [refusal.reason for refusal in refused.refusals] == [LACKING_BOTH]  # type: ignore[union-attr]  # it was refused


def test_an_input_with_several_urls_needs_a_word_of_its_own_and_one_for_each_of_them() -> None:
    [role] = spec(1).roles
    urls = ("https://example.org/a", "az://acme/b")
    of = replace(role, inputs=(JobInput(name="a", urls=urls, secret="blobs"),))
    assert needed(spec(1), of) == {INPUTS, INPUT_LISTS, BUCKETS, AZURE_STORES, INPUT_SECRETS}


def test_checkpoints_in_a_store_need_a_word_of_their_own() -> None:
    [role] = spec(1).roles
    saves = replace(role, checkpoint=JobCheckpoint(to="az://acme/saved", secret="blobs"))
    assert needed(spec(1), saves) == {STORED_CHECKPOINTS, CHECKPOINT_STORES, AZURE_STORES}


def with_outputs(**terms: Any) -> JobSpec:
    one = spec(1)
    return replace(one, roles=(replace(one.roles[0], outputs=OutputTerms(**terms)),))


@pytest.mark.parametrize("terms", [{"only": ("*.pt",)}, {"limit": 2**30}, {"after": StoredAfter.SUCCESS}])
def test_a_node_that_would_store_other_outputs_than_its_job_says_is_passed_over(terms: dict[str, Any]) -> None:
    w = an_older_agent("a")
    job = w.submit(with_outputs(**terms), queue_anyway=True)

    assert [refusal.reason for refusal in explain(w.cluster, job, w.now).refusals] == [
        "has an agent that does not know what jobs say of their outputs; upgrade it"
    ]


def test_outputs_that_go_to_a_store_need_a_word_of_their_own() -> None:
    w = an_older_agent("a")
    job = w.submit(with_outputs(to="s3://acme", secret="store"), queue_anyway=True)

    assert [refusal.reason for refusal in explain(w.cluster, job, w.now).refusals] == [
        "has an agent that does not know outputs in stores of objects; upgrade it"
    ]


def test_for_how_long_outputs_are_kept_is_no_affair_of_nodes() -> None:
    w = an_older_agent("a")
    assert w.phase(w.submit(with_outputs(keep=timedelta(days=1)))) is JobPhase.PREPARING


def test_a_job_that_waited_for_a_word_starts_when_an_agent_says_it() -> None:
    w = an_older_agent("a")
    job = w.submit(with_secrets(spec(1)), queue_anyway=True)
    w.connect("a", features=frozenset({SECRETS}))

    assert w.phase(job) is JobPhase.PREPARING


def test_jobs_that_differ_in_words_alone_do_not_stand_for_each_other() -> None:
    w = an_older_agent("a")
    needing, plain = [w.submit(each, queue_anyway=True) for each in (with_secrets(spec(1)), spec(1))]

    assert (w.phase(needing), w.phase(plain)) == (JobPhase.QUEUED, JobPhase.PREPARING)
