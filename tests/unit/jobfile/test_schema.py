"""The JSON Schema says what the models say."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from muster.domain.jobs.job import JobSpec
from muster.jobfile import JobFileError, dump_job, job_schema, load_job
from tests.unit.jobfile.valid_jobs import any_job

GOOD = [
    {"name": "a", "command": "x"},
    {"name": "a", "image": "b", "command": ["sleep", 10], "env": {"A": 1, "B": True}},
    {"name": "a", "image": "b", "ports": ["rdzv", {"name": "m", "port": 5}], "mounts": ["/a:/b:rw"]},
    {"name": "a", "image": "b", "ulimits": {"nofile": 5, "core": "unlimited", "stack": {"soft": 1, "hard": 2}}},
    {"name": "a", "command": "x", "resources": {"cpus": "500m", "memory": "16Gi"}, "timeouts": {"run": "1h30m"}},
    {"name": "a", "command": "x", "resources": {"cpus": 0.5, "memory": 8388608}, "timeouts": {"run": 90}},
    {"name": "a", "command": "x", "roles": [{"name": "b", "count": 2}]},
    {"name": "a", "command": "x", "timeouts": {"lost_after": 60}, "on_disconnect": "stop"},
    {"name": "a", "command": "x", "timeouts": {"lost_after": "7d"}, "on_disconnect": "keep"},
    {"name": "a", "command": "x", "secrets": ["b", {"secret": "c", "env": True}, {"secret": "d", "env": "X"}]},
    {"name": "a", "image": "b", "secrets": [{"secret": "c", "env": {"X": "k.y", "Y": ""}, "directory": "/run/c"}]},
    {"name": "a", "command": "x", "volumes": {"s": {"size": "1Gi"}}},
    {"name": "a", "command": "x", "volumes": {"s": {"size": "1Gi", "keep": "node"}}},
    {"name": "a", "image": "b", "volumes": {"s": {"size": "1Gi", "keep": "node", "writable": False}}},
    {"name": "a", "command": "x", "inputs": {"s": "https://a.b/c", "t": {"url": "http://a/b", "sha256": "a" * 64}}},
    {"name": "a", "command": "x", "outputs": {"on": "success", "only": ["**/*.pt"], "limit": "2Gi", "keep": "90d"}},
    {"name": "a", "image": "b", "inputs": {"s": {"url": "https://a.b/c", "path": "/s"}}},
    {"name": "a", "image": "b", "volumes": {"s": {"path": "/s", "size": "1Gi"}, "t": {"tmpfs": "2Gi"}}},
]
BAD = [
    {"command": "x"},
    {"name": "A", "command": "x"},
    {"name": "a", "command": "x", "comand": 1},
    {"name": "a", "command": "x", "workers": 0},
    {"name": "a", "command": "x", "workers": None},
    {"name": "a", "command": "x", "resources": {"gpus": 65}},
    {"name": "a", "command": "x", "resources": {"memory": "1Gx"}},
    {"name": "a", "command": "x", "ports": [{"name": "m", "port": 0}]},
    {"name": "a", "command": "x", "network": "none"},
    {"name": "a", "command": "x", "timeouts": {"lost_after": 59}},
    {"name": "a", "command": "x", "on_disconnect": "wait"},
    {"name": "a", "command": "x", "secrets": ["B"]},
    {"name": "a", "command": "x", "secrets": [{"secret": "b", "env": False}]},
    {"name": "a", "command": "x", "secrets": [{"secret": "b", "env": {"X": "a b"}}]},
    {"name": "a", "command": "x", "secrets": [{"secret": "b", "value": "x"}]},
    {"name": "a", "command": "x", "workers": 1, "roles": [{"name": "b"}]},
    {"name": "a"},
    {"name": "a", "roles": [{"name": "b"}, {"name": "c", "image": "d"}]},
    {"name": "a", "command": "x", "roles": []},
    {"name": "a", "command": []},
    {"name": "a", "command": [" ", "x"]},
    {"name": "a", "command": "x", "user": "root"},
    {"name": "a", "command": "x", "resources": {"shm": "1Gi"}},
    {"name": "a", "command": "x", "security": {"privileged": True}},
    {"name": "a", "command": "x", "network": "bridge"},
    {"name": "a", "command": "x", "pull": "always", "roles": [{"name": "b", "image": "c"}, {"name": "d"}]},
    {"name": "a", "command": "x", "roles": [{"name": "b", "image": "c"}, {"name": "d", "mounts": []}]},
    {"name": "a", "command": "x", "volumes": {"s": {"path": "/s", "size": "1Gi"}}},
    {"name": "a", "command": "x", "inputs": {"s": {"url": "https://a.b/c", "path": "/s"}}},
    {"name": "a", "command": "x", "inputs": {"s": "s3://a/b"}},
    {"name": "a", "command": "x", "outputs": {"on": "failure"}},
    {"name": "a", "command": "x", "outputs": {"only": [""]}},
    {"name": "a", "command": "x", "outputs": {"limit": 1024}},
    {"name": "a", "command": "x", "outputs": {"to": "s3://a/b"}},
    {"name": "a", "command": "x", "inputs": {"s": {"path": "/s"}}},
    {"name": "a", "command": "x", "inputs": {"s": {"url": "https://a.b/c", "sha256": "1"}}},
    {"name": "a", "command": "x", "volumes": {"s": {"tmpfs": "1Gi"}}},
    {"name": "a", "command": "x", "volumes": {"s": {"size": "1Gi", "keep": "node", "writable": False}}},
    {"name": "a", "image": "b", "volumes": {"s": {"size": "1Gi", "writable": False}}},
    {"name": "a", "image": "b", "volumes": {"s": {"tmpfs": "1Gi", "keep": "node"}}},
    {"name": "a", "image": "b", "volumes": {"s": {"path": "/s"}}},
    {"name": "a", "image": "b", "volumes": {"s": {"size": "1Gi", "tmpfs": "1Gi"}}},
    {"name": "a", "image": "b", "volumes": {"s": {"path": "/proc", "size": "1Gi"}}},
    {"name": "a", "image": "b", "volumes": {"s": {"path": "/muster/x", "size": "1Gi"}}},
    {"name": "a", "image": "b", "volumes": {"s": {"size": "1Gi", "keep": "job"}}},
    {"name": "a", "image": "b", "user": "1", "security": {"image_user": True}},
    {"name": "a", "image": "Acme/b"},
    {"name": "a", "image": "b", "mounts": ["/a:/muster/x"]},
    {"name": "a", "image": "b", "mounts": [{"source": "/a", "target": "/"}]},
    {"name": "a", "image": "b", "ulimits": {"memlok": 1}},
    {"name": "a", "command": "x", "env": {"A-B": "x"}},
    {"name": "a", "command": "x", "env": {"MUSTER_RANK": "x"}},
    {"name": "a", "command": "x", "env": {"A": "\0"}},
    {"name": "a", "command": "x", "env": {"A": "x" * 200_000}},
    {"name": "a", "command": "x", "labels": {"a b": "c"}},
    {"name": "a", "command": "x", "labels": {"a": "b" * 257}},
    {"name": "a", "command": "x", "node_labels": {"a": "\u202e"}},
    {"name": "a", "command": "x", "workdir": "/a/../b"},
    {"name": "a", "command": "x", "files": [{"path": "b"}]},
    {"name": "a", "command": "x", "files": [{"path": "b", "content": "", "source": "c"}]},
    {"name": "a", "command": "x", "files": [{"path": "../b", "content": ""}]},
    {"name": "a", "command": "x", "files": [{"path": "b", "content_base64": "?"}]},
    {"name": "a", "command": "x", "resources": {"memory": 16}},
    {"name": "a", "command": "x", "resources": {"cpus": "0"}},
    {"name": "a", "command": "x", "timeouts": {"grace": "0s"}},
    {"name": "a", "command": "x", "timeouts": {"run": "366d"}},
    {"name": "a", "command": "x", "timeouts": {"lost_after": "59s"}},
    {"name": "a", "command": "x", "restarts": {"backoff": "1ms"}},
    {"name": "a", "command": "x", "exit_codes": {"success": "3"}},
    {"name": "a", "command": "x", "ports": ["b", "b"]},
    {"name": "a", "command": "x", "secrets": [{"secret": "b", "directory": "/dev/shm"}]},
    {"name": "a", "command": "x", "secrets": [{"secret": "b", "env": "RANK"}]},
]


@pytest.mark.parametrize("document", GOOD, ids=json.dumps)
def test_what_loads_is_valid(document: dict[str, Any]) -> None:
    spec = load_job(json.dumps(document), "job.json")
    validator = Draft202012Validator(job_schema())
    assert list(validator.iter_errors(document)) == []
    assert list(validator.iter_errors(dump_job(spec))) == []


@pytest.mark.parametrize("document", BAD, ids=lambda document: json.dumps(document)[:80])
def test_what_is_refused_is_invalid(document: dict[str, Any]) -> None:
    assert not Draft202012Validator(job_schema()).is_valid(document)


@pytest.mark.parametrize("document", BAD, ids=lambda document: json.dumps(document)[:80])
def test_what_the_schema_refuses_is_refused_by_the_reader(document: dict[str, Any]) -> None:
    with pytest.raises(JobFileError):
        load_job(json.dumps(document), "job.json")


@settings(max_examples=30)
@given(any_job)
def test_no_valid_job_is_refused(spec: JobSpec) -> None:
    assert list(Draft202012Validator(job_schema()).iter_errors(dump_job(spec))) == []


def test_the_schema_has_an_id_by_which_editors_know_it() -> None:
    assert job_schema()["$id"] == "urn:muster:job-file"


def test_the_schema_is_itself_valid() -> None:
    Draft202012Validator.check_schema(job_schema())


def properties(node: object) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(node, dict):
        yield from node.get("properties", {}).items()
    inside = {key: value for key, value in node.items() if key != "allOf"} if isinstance(node, dict) else {}
    for inner in inside.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from properties(inner)


def test_every_key_is_described() -> None:
    found = list(properties(job_schema()))
    assert {"name", "gpu_model", "check_in", "content_base64"} <= {key for key, _ in found}
    assert [key for key, schema in found if not schema.get("description", "").endswith(".")] == []


def test_no_key_may_be_null() -> None:
    assert '"null"' not in json.dumps(job_schema())


def test_importing_the_package_reads_no_yaml_and_makes_no_models() -> None:
    code = (
        "import sys, muster.jobfile, muster.jobfile.quantity; print({'pydantic', 'ruamel.yaml'} & sys.modules.keys())"
    )
    assert subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout == "set()\n"
