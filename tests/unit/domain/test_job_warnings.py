"""A job that would be several worlds in place of one is told so, with the line to add; others hear nothing."""

from dataclasses import replace
from typing import Any

import pytest

from muster.domain.jobs.frameworks.framework import Framework, FrameworkName
from muster.domain.jobs.job import JobSpec, Resources, Role
from muster.domain.jobs.rules.warnings import warnings


def job(*words: str, workers: int = 3, framework: Framework | None = None, **env: str) -> JobSpec:
    return JobSpec(name="train", roles=(Role(count=workers, command=words, env=env),), framework=framework)


def line(text: str) -> JobSpec:
    return job("/bin/sh", "-c", text)


@pytest.mark.parametrize(
    "spec",
    [
        job("torchrun", "--nproc-per-node", "1", "train.py"),
        job("/opt/venv/bin/torchrun", "train.py"),
        job("python", "-m", "torch.distributed.run", "train.py"),
        job("python3.11", "-m", "torch.distributed.launch", "train.py"),
        job("accelerate", "launch", "train.py"),
        line("cd /code && exec torchrun \\\n  train.py"),
        line("pip list | tail\nOMP_NUM_THREADS=1 torchrun train.py > log"),
    ],
)
def test_a_launcher_that_knows_of_no_others_is_told_of(spec: JobSpec) -> None:
    [warning] = warnings(spec)
    assert "each of the 3 would train by itself" in warning.message
    assert "`framework: pytorch`" in warning.message
    assert warning.path == ("roles", 0, "command")


@pytest.mark.parametrize(
    ("words", "framework"),
    [
        ("mpirun -n 4 ./solve --hot", "mpi"),
        ("mpiexec ./solve", "mpi"),
        ("horovodrun -np 4 python train.py", "horovod"),
        ("deepspeed train.py --deepspeed", "deepspeed"),
    ],
)
def test_a_launcher_of_another_framework_is_told_that_one(words: str, framework: str) -> None:
    [warning] = warnings(job(*words.split()))
    assert f"`framework: {framework}`" in warning.message


@pytest.mark.parametrize(
    "spec",
    [
        job("mpirun", "--hostfile", "hosts", "./solve"),
        job("deepspeed", "--hostfile", "hosts", "train.py"),
        job("torchrun", "--nnodes", "3", "train.py"),
        job("torchrun", "--nnodes=$NNODES", "train.py"),
        job("torchrun", "--standalone", "train.py"),
        job("torchrun", "--rdzv-endpoint", "a:1", "train.py"),
        job("torchrun", "train.py", workers=1),
        job("torchrun", "train.py", framework=Framework(name=FrameworkName.PYTORCH)),
        job("torchrun", "train.py", PET_NNODES="3"),
        job("accelerate", "launch", "--config_file", "a.yaml", "train.py"),
        job("accelerate", "env"),
        job("python", "train.py"),
        line("echo torchrun train.py"),
        line("echo 'torchrun\ntorchrun"),
        line(""),
        job(),
    ],
)
def test_nobody_else_is_warned(spec: JobSpec) -> None:
    assert list(warnings(spec)) == []


def portions(framework: str, **fields: Any) -> JobSpec:
    spec = job("python", "train.py", framework=Framework(name=FrameworkName(framework)))
    needs = Resources(gpus=1, **{"gpu_portion": 500, **fields.pop("needs", {})})
    return replace(spec, roles=(replace(spec.roles[0], resources=needs),), **fields)


def test_a_gang_that_talks_by_nccl_and_may_share_a_gpu_is_told_so() -> None:
    for spec in (portions("pytorch"), portions("deepspeed", needs={"gpu_portion": None, "gpu_memory": 2**33})):
        [warning] = warnings(spec)
        assert "several executions on one GPU, which NCCL refuses; say max_per_node: 1" in warning.message

    for spec in (portions("jax"), portions("pytorch", max_per_node=1), portions("pytorch", needs={"gpu_portion": 501})):
        assert list(warnings(spec)) == []
