"""Values of a wrong type in a job that a program has made: a sentence for each, with its place."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings

from muster.client.mistyped import refuse_mistyped
from muster.domain.errors import InvalidJobError
from muster.domain.jobs.job import JobSpec, Mount, PortRequest, Resources, Role, Timeouts
from tests.unit.jobfile.valid_jobs import any_job

JOB: dict[str, Any] = {"name": "hello"}


def _refused(**keys: Any) -> list[str]:
    with pytest.raises(InvalidJobError) as caught:
        refuse_mistyped(JobSpec(**{**JOB, **keys}))
    assert str(caught.value) == "\n".join(map(str, caught.value.faults))
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        (
            {"command": "echo hi"},
            'roles[0].command: is one text; write its words apart, or ("/bin/sh", "-c", \'echo hi\')',
        ),
        ({"command": ("sleep", 5)}, 'roles[0].command[1]: must be text, not 5; did you mean "5"?'),
        ({"env": {"A": 1}}, 'roles[0].env.A: must be text, not 1; did you mean "1"?'),
        ({"env": ["A=1"]}, "roles[0].env: must be a dict, not ['A=1']"),
        ({"env": {1: "A"}}, "roles[0].env: has the key 1; keys are text"),
        ({"count": "3"}, "roles[0].count: must be a whole number, not '3'"),
        ({"count": True}, "roles[0].count: must be a whole number, not True"),
        ({"resources": {"gpus": 1}}, "roles[0].resources: must be of the class Resources, not {'gpus': 1}"),
        ({"resources": Resources(memory="16Gi")}, "roles[0].resources.memory: must be a whole number, not '16Gi'"),  # type: ignore[arg-type]  # mistyped
        ({"ports": ("web",)}, "roles[0].ports[0]: must be of the class PortRequest, not 'web'"),
        ({"ports": "web"}, "roles[0].ports: must be a list or tuple, not 'web'"),
        ({"pull": "sometimes"}, "roles[0].pull: must be one of always, missing, never, not 'sometimes'"),
    ],
)
def test_a_value_of_a_role_that_has_a_wrong_type_is_named(keys: dict[str, Any], sentence: str) -> None:
    assert _refused(roles=(Role(**keys),)) == [sentence]


def test_values_of_the_job_are_looked_at_too_and_all_are_told() -> None:
    timeouts = Timeouts(run=3600)  # type: ignore[arg-type]  # mistyped
    assert _refused(name=7, timeouts=timeouts, roles=Role(command=("true",))) == [
        'name: must be text, not 7; did you mean "7"?',
        f"roles: must be a list or tuple, not {repr(Role(command=('true',)))[:60]}…",
        "timeouts.run: must be a timedelta, not 3600",
    ]


def test_what_is_of_its_type_passes_and_so_do_lists_and_the_words_of_enumerations() -> None:
    role = Role(
        command=["python", "train.py"],  # type: ignore[arg-type]  # mistyped
        env={"A": "1"},
        ports=[PortRequest(name="web", port=80)],  # type: ignore[arg-type]  # mistyped
        mounts=(Mount(source="/data", target="/data"),),
        pull="never",  # type: ignore[arg-type]  # mistyped
    )
    spec = JobSpec(name="hello", roles=[role], network="bridge", timeouts=Timeouts(run=timedelta(hours=1)))  # type: ignore[arg-type]  # mistyped
    assert refuse_mistyped(spec) is spec


@settings(max_examples=40)
@given(any_job)
def test_every_valid_job_passes(spec: JobSpec) -> None:
    assert refuse_mistyped(spec) is spec
