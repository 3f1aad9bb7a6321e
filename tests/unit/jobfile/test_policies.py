"""Policies: what they let through, how a refusal reads, and that a project only narrows what its fleet allows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.errors import InvalidJobError
from muster.domain.fleet.policies.policy import JobPolicy, PolicyIssue, changed_rules
from muster.domain.jobs.job import JobSpec
from muster.jobfile import job_from
from muster.jobfile.policies import policy_document, policy_rules, refuse_broken_policies, refuse_policy_faults
from muster.jobfile.policies.issues import policy_issues

ROLES = [{"name": "master"}, {"name": "worker", "count": 3, "resources": {"gpus": 8}}]


def job(**keys: Any) -> JobSpec:
    return job_from({"name": "train", "command": ["true"], **keys}, "test")


def policy(rules: dict[str, Any], project: str = "vision") -> JobPolicy:
    return JobPolicy(project=project, rules=policy_rules({"rules": rules}))


def broken(rules: dict[str, Any], **keys: Any) -> list[str]:
    """The words of the rules that a job breaks."""
    return [issue.rule for issue in policy_issues(job(**keys), [policy(rules)])]


def said(rules: dict[str, Any], **keys: Any) -> str:
    """How a job is refused."""
    with pytest.raises(InvalidJobError) as refused:
        refuse_broken_policies(job(**keys), [policy(rules)])
    return str(refused.value)


GPUS = {"resources.gpus": {"required": True, "min": 2, "max": 8, "step": 2}}
IMAGES = {"image": {"pattern": "registry.local/*", "options": ["python:3.11"]}}


@pytest.mark.parametrize(
    ("rules", "keys", "words"),
    [
        (GPUS, {}, ["required", "min"]),
        (GPUS, {"resources": {"gpus": 2}}, []),
        (GPUS, {"resources": {"gpus": 8}}, []),
        (GPUS, {"resources": {"gpus": 9}}, ["max", "step"]),
        (GPUS, {"resources": {"gpus": 5}}, ["step"]),
        ({"resources.gpus": {"step": 4}}, {"resources": {"gpus": 6}}, ["step"]),
        ({"resources.memory": {"max": "64Gi"}}, {"resources": {"memory": "65536Mi"}}, []),
        ({"resources.memory": {"max": "64Gi"}}, {"resources": {"memory": "65Gi"}}, ["max"]),
        ({"resources.memory": {"max": "64Gi"}}, {}, []),
        ({"resources.memory": {"required": True}}, {}, ["required"]),
        ({"resources.memory_limit": {"max": "64Gi"}}, {"resources": {"memory_limit": "none"}}, ["max"]),
        ({"resources.cpus": {"max": "1500m"}}, {"resources": {"cpus": 1.5}}, []),
        ({"resources.cpus": {"max": "1500m"}}, {"resources": {"cpus": 2}}, ["max"]),
        ({"timeouts.run": {"required": True, "max": "3d"}}, {"timeouts": {"run": "72h"}}, []),
        ({"timeouts.run": {"required": True, "max": "3d"}}, {"timeouts": {"run": "73h"}}, ["max"]),
        ({"priority": {"max": 10}}, {"priority": 11}, ["max"]),
        ({"priority": {"locked": True}}, {"priority": 1}, ["locked"]),
        ({"priority": {"locked": True}}, {}, []),
        ({"env.DEBUG": {"locked": True}}, {"env": {"OTHER": "1"}}, []),
        ({"env.DEBUG": {"locked": True}}, {"env": {"DEBUG": "1"}}, ["locked"]),
        ({"pull": {"edit": False}}, {"image": "a", "pull": "always"}, ["edit"]),
        ({"pull": {"edit": False}}, {"image": "a"}, []),
        ({"mounts": {"add": False}}, {"image": "a", "mounts": ["/data:/data"]}, ["add"]),
        ({"env": {"add": False}}, {}, []),
        (IMAGES, {"image": "registry.local/team/pt:2"}, []),
        (IMAGES, {"image": "python:3.11"}, []),
        (IMAGES, {"image": "docker.io/registry.local/x"}, ["options"]),
        ({"pools": {"add": False}}, {"pools": ["a"]}, ["add"]),
        ({"dialects": {"options": ["slurm"]}}, {"dialects": ["slurm", "valohai"]}, ["options"]),
        ({"node_labels.example.org/rack": {"options": ["7"]}}, {"node_labels": {"example.org/rack": "8"}}, ["options"]),
        ({"class": {"options": ["spare"]}}, {"class": "guaranteed"}, ["options"]),
        ({"workers": {"max": 3}}, {"workers": 4}, ["max"]),
        ({"workers": {"max": 3}}, {"roles": ROLES}, ["max"]),
        ({"roles.master.resources.gpus": {"max": 0}}, {"roles": ROLES}, []),
        ({"roles.worker.resources.gpus": {"max": 4}}, {"roles": ROLES}, ["max"]),
        ({"roles.worker.count": {"max": 2}}, {"roles": ROLES}, ["max"]),
        (GPUS, {"roles": ROLES}, ["required", "min"]),
    ],
)
def test_each_rule_refuses_what_it_says_and_nothing_else(
    rules: dict[str, Any], keys: dict[str, Any], words: list[str]
) -> None:
    assert broken(rules, **keys) == words


def test_a_refusal_says_the_key_what_is_allowed_the_rule_and_whose_policy_it_is() -> None:
    gpus = {"resources.gpus": {"min": 2, "max": 8, "step": 2}}
    assert said(gpus, resources={"gpus": 3}) == (
        "roles[0].resources.gpus: 3 is not allowed; 2, 4, 6 or 8 are (rule step of the policy of project vision)"
    )
    assert "72h1m" not in said({"timeouts.run": {"max": "3d"}}, timeouts={"run": "4d"})
    assert "4d is not allowed; at most 3d is" in said({"timeouts.run": {"max": "3d"}}, timeouts={"run": "4d"})
    assert '"a" is not allowed; "b" or what fits "c*" are' in said(
        {"image": {"options": ["b"], "pattern": "c*"}}, image="a"
    )
    assert "priority: is locked; leave it at" in said({"priority": {"locked": True}}, priority=1)
    assert "leave it out" in said({"labels.team": {"edit": False}}, labels={"team": "a"})
    assert "must be said in the job file" in said({"labels.team": {"required": True}})


def test_what_a_changed_job_broke_before_it_may_break_still() -> None:
    old, rules = job(priority=5, resources={"gpus": 9}), [policy({**GPUS, "priority": {"max": 6}})]

    refuse_broken_policies(job(priority=6, resources={"gpus": 9}), rules, old)
    with pytest.raises(InvalidJobError, match="priority: 7 is not allowed"):
        refuse_broken_policies(job(priority=7, resources={"gpus": 9}), rules, old)


@pytest.mark.parametrize(
    ("rules", "wrong"),
    [
        ({"resources.gpu": {"max": 1}}, "did you mean gpus"),
        ({"resorces.gpus": {"max": 1}}, "is no key of a job file"),
        ({"name.x": {"max": 1}}, "has no keys"),
        ({"project": {"options": ["a"]}}, "is not for policies"),
        ({"roles.master": {"required": True}}, "must name a role and a key of it"),
        ({"roles.master.priority": {"max": 1}}, "is no key of a role"),
        ({"resources.memory": {"max": "many"}}, "is no amount for this key"),
        ({"priority": {"min": 2, "max": 1}}, "nothing would be allowed"),
        ({"priority": {"step": -1}}, "step that is not above zero"),
        ({"priority": {}}, "has no rule"),
        ({"image": {"pattern": "x" * 501}}, "more than 500 characters"),
        ({"image": {"options": [str(number) for number in range(201)]}}, "200 are the most"),
        ({f"env.E{number}": {"locked": True} for number in range(201)}, "200 keys at most"),
    ],
)
def test_a_policy_that_could_not_hold_is_refused_when_it_is_set(rules: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InvalidJobError, match=wrong):
        refuse_policy_faults(policy(rules))


@pytest.mark.parametrize(
    ("document", "wrong"),
    [
        ([], "the one key `rules`"),
        ({"rules": {}, "defaults": {}}, "the one key `rules`"),
        ({"rules": {"priority": 1}}, "must be a map"),
        ({"rules": {"priority": {"maximum": 1}}}, "is no rule"),
        ({"rules": {"priority": {"locked": "perhaps"}}}, "must be true or false"),
        ({"rules": {"priority": {"max": [1]}}}, "must be a single value"),
        ({"rules": {"image": {"options": "a"}}}, "must be a list"),
    ],
)
def test_a_document_that_is_no_policy_is_refused_with_what_is_wrong(document: Any, wrong: str) -> None:
    with pytest.raises(InvalidJobError, match=wrong):
        policy_rules(document)


def test_rules_read_to_what_they_were_written_from_and_changes_of_them_are_told_by_key() -> None:
    rules = policy({**GPUS, **IMAGES, "env": {"add": False}, "pull": {"edit": "false"}}).rules

    assert policy_rules(policy_document(rules)) == rules
    assert changed_rules(rules, policy({**GPUS, "image": {"pattern": "*"}, "priority": {"max": 1}}).rules) == (
        "+priority, -env, -pull, ~image"
    )
    assert changed_rules(rules, rules) == "nothing"


gpus_rules = st.fixed_dictionaries(
    {},
    optional={
        "required": st.booleans(),
        "min": st.integers(0, 6),
        "max": st.integers(0, 9),
        "step": st.integers(1, 4),
        "locked": st.booleans(),
        "options": st.lists(st.integers(0, 8).map(str), min_size=1, max_size=3),
    },
)
rules_of_two = st.fixed_dictionaries({}, optional={"resources.gpus": gpus_rules, "workers": gpus_rules})


@given(rules_of_two, rules_of_two, st.integers(0, 9), st.integers(1, 9))
def test_a_project_never_lets_through_what_its_fleet_refuses(
    fleets: dict[str, Any], own: dict[str, Any], gpus: int, workers: int
) -> None:
    spec, fleet, project = job(resources={"gpus": gpus}, workers=workers), policy(fleets, "*"), policy(own)
    refused: tuple[PolicyIssue, ...] = policy_issues(spec, [fleet])

    assert set(refused) <= set(policy_issues(spec, [fleet, project]))
