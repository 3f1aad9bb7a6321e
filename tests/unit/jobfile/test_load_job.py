"""What a good job file becomes."""

from datetime import timedelta
from pathlib import Path

import pytest

from muster.domain.jobs.disconnect import OnDisconnect
from muster.domain.jobs.job import (
    InlineFile,
    JobSpec,
    Mount,
    Network,
    Packing,
    PortRequest,
    PullPolicy,
    Resources,
    Role,
    Timeouts,
    Ulimit,
)
from muster.domain.jobs.lifecycle import SuccessRule
from muster.domain.jobs.rules.filling_in import filled_in
from muster.jobfile import load_job

EVERY_KEY = """\
name: llama-sft
image: registry.local:5000/acme/train:1.4
pull: always
entrypoint: []
command: [torchrun, --nnodes, 4, train.py]
workers: 4
resources: {gpus: 8, gpu_model: H100, cpus: 0.5, memory: 16Gi, shm: 1.5G}
env: {LR: 0.10, EMPTY: ""}
workdir: /app
user: 1000:1000
ports: [rdzv, {name: metrics, port: 9100}]
mounts:
  - /data:/data
  - /scratch:/scratch:rw
  - {source: "/odd:name", target: /odd, read_only: false}
ulimits: {memlock: unlimited, nofile: 65536, stack: {soft: 8, hard: unlimited}}
files:
  - {path: run.sh, content: "echo hi\\n", executable: true}
  - {path: /etc/key, content_base64: AAH/}
network: bridge
success: rank0
priority: -5
placement: spread
max_per_node: 2
node_labels: {rack: 7, ssd: true}
timeouts: {check_in: 1h30m, grace: 90, run: 2d, lost_after: 5m}
on_disconnect: stop
"""


def job(text: str, base: Path | None = None) -> JobSpec:
    return load_job(text, "job.yaml", base=base)


def test_the_smallest_job_has_the_defaults_of_the_domain() -> None:
    role = Role(command=("/bin/sh", "-c", "echo hi"))
    assert job("name: a\ncommand: echo hi\n") == filled_in(JobSpec(name="a", roles=(role,)))


def test_every_key_finds_its_place() -> None:
    role = Role(
        count=4,
        image="registry.local:5000/acme/train:1.4",
        pull=PullPolicy.ALWAYS,
        entrypoint=(),
        command=("torchrun", "--nnodes", "4", "train.py"),
        env={"LR": "0.10", "EMPTY": ""},
        workdir="/app",
        user="1000:1000",
        resources=Resources(gpus=8, gpu_model="H100", cpu_millis=500, memory=16 * 2**30, shm=1_500_000_000),
        ports=(PortRequest(name="rdzv"), PortRequest(name="metrics", port=9100)),
        mounts=(
            Mount(source="/data", target="/data"),
            Mount(source="/scratch", target="/scratch", read_only=False),
            Mount(source="/odd:name", target="/odd", read_only=False),
        ),
        ulimits=(
            Ulimit(name="memlock", soft=-1, hard=-1),
            Ulimit(name="nofile", soft=65536, hard=65536),
            Ulimit(name="stack", soft=8, hard=-1),
        ),
        files=(
            InlineFile(path="run.sh", content=b"echo hi\n", executable=True),
            InlineFile(path="/etc/key", content=b"\x00\x01\xff"),
        ),
    )
    assert job(EVERY_KEY) == JobSpec(
        name="llama-sft",
        roles=(role,),
        network=Network.BRIDGE,
        success=SuccessRule.RANK0,
        priority=-5,
        packing=Packing.SPREAD,
        max_per_node=2,
        node_labels={"rack": "7", "ssd": "true"},
        timeouts=Timeouts(
            check_in=timedelta(minutes=90),
            grace=timedelta(seconds=90),
            run=timedelta(days=2),
            lost_after=timedelta(minutes=5),
        ),
        on_disconnect=OnDisconnect.STOP,
    )


@pytest.mark.parametrize(
    "written",
    ["no", "No", "22:22", "010", "1_000", "0x1F", "1e3", "True", "2001-12-14", "~user", "=", "5.0", "a b"],
)
def test_values_of_the_environment_stay_as_written(written: str) -> None:
    assert job(f"name: a\ncommand: x\nenv:\n  NO: {written}\n").roles[0].env == {"NO": written}


def test_words_of_a_command_stay_as_written() -> None:
    assert job("name: a\ncommand: [sleep, 010, no, 1.50]\n").roles[0].command == ("sleep", "010", "no", "1.50")


def test_an_alias_repeats_what_its_anchor_names() -> None:
    text = "name: a\ncommand: &words [x, y]\nroles:\n- {name: p}\n- {name: q, command: *words}\n"
    assert [role.command for role in job(text).roles] == [("x", "y"), ("x", "y")]


def test_json_is_a_job_file_too() -> None:
    text = '{"name": "a", "command": ["x"], "env": {"E": "\\ud83d\\ude00\\u00e9"}}'
    assert job(text).roles[0].env == {"E": "😀é"}


def test_roles_take_the_keys_of_the_job_as_defaults() -> None:
    text = """\
name: a
image: base
command: [work]
env: {A: job, B: job}
resources: {gpus: 4, memory: 8Gi}
ports: [rdzv]
ulimits: {nofile: 10}
roles:
  - {name: master, command: [lead], env: {B: role, C: role}, resources: {gpus: 0}, ports: [], ulimits: {core: 0}}
  - {name: worker, count: 3, image: other}
"""
    master, worker = job(text).roles
    nofile, core = Ulimit(name="nofile", soft=10, hard=10), Ulimit(name="core", soft=0, hard=0)
    assert master == Role(
        name="master",
        image="base",
        command=("lead",),
        env={"A": "job", "B": "role", "C": "role"},
        resources=Resources(gpus=0, memory=8 * 2**30),
        ulimits=(core, nofile),
    )
    assert worker == Role(
        name="worker",
        count=3,
        image="other",
        command=("work",),
        env={"A": "job", "B": "job"},
        resources=Resources(gpus=4, memory=8 * 2**30),
        ports=(PortRequest(name="rdzv"),),
        ulimits=(nofile,),
    )


def test_a_source_is_read_beside_the_job_file(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(b"print()\xff")
    loaded = job("name: a\ncommand: x\nfiles: [{path: t.py, source: train.py}]", tmp_path)
    assert loaded.roles[0].files == (InlineFile(path="t.py", content=b"print()\xff"),)


def test_files_of_exactly_the_limit_are_taken(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(2**20))
    loaded = job("name: a\ncommand: x\nfiles: [{path: t, source: big}]", tmp_path)
    assert len(loaded.roles[0].files[0].content) == 2**20


def test_ten_thousand_executions_are_taken() -> None:
    assert job("name: a\ncommand: x\nworkers: 10000").size == 10_000
