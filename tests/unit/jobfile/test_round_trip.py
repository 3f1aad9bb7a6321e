"""A dumped job loads again to an equal one, through JSON and through YAML."""

import json

from hypothesis import given, settings

from muster.cli.output.documents import Format, text_of
from muster.domain.jobs.job import JobSpec
from muster.jobfile import dump_job, job_from, load_job
from tests.unit.jobfile.valid_jobs import any_job


@settings(max_examples=40)
@given(any_job)
def test_a_dumped_job_loads_again_from_values_and_from_json(spec: JobSpec) -> None:
    dumped = dump_job(spec)
    assert job_from(dumped, "values") == spec
    assert load_job(json.dumps(dumped), "job.json") == spec


@settings(max_examples=25)
@given(any_job)
def test_what_a_dry_run_prints_loads_again(spec: JobSpec) -> None:
    assert load_job(text_of(spec, Format.YAML), "job.yaml") == spec


def test_a_plain_job_is_dumped_without_roles() -> None:
    spec = load_job("name: a\ncommand: [x]\nworkers: 3\nresources: {memory: 1024Mi}", "job.yaml")
    assert dump_job(spec) == {
        "name": "a",
        "workers": 3,
        "command": ["x"],
        "resources": {"gpus": 0, "cpus": "1", "memory": "1Gi"},
        "network": "host",
        "success": "all",
        "priority": 0,
        "placement": "pack",
        "timeouts": {"check_in": "10m", "grace": "10s", "lost_after": "1m30s"},
        "on_disconnect": "keep",
    }


def test_a_container_is_dumped_with_its_pull_policy_and_an_emptied_entrypoint() -> None:
    spec = load_job("name: a\nimage: b\nentrypoint: []\nroles: [{name: c, count: 2}]", "job.yaml")
    assert dump_job(spec)["roles"] == [
        {
            "name": "c",
            "count": 2,
            "image": "b",
            "pull": "missing",
            "entrypoint": [],
            "resources": {"gpus": 0, "cpus": "1"},
        },
    ]
