"""Ray: every execution is a node of one cluster, which takes nobody in without the token of the attempt."""

import shutil
import subprocess
from dataclasses import replace

import pytest

from muster.domain.gangs.fence import Fence
from muster.domain.jobs.frameworks.framework import Framework, FrameworkName
from tests.unit.agent.core.gang_builders import framed, gang, launched, workers

RAY = Framework(name=FrameworkName.RAY, processes=1)


@pytest.mark.parametrize("size", [1, 3, 12])
@pytest.mark.parametrize("gpus", [0, 4])
def test_a_node_of_ray_knows_its_head_and_itself(size: int, gpus: int) -> None:
    launches = framed("ray", workers(size), gpus)
    [token] = {each.env["RAY_AUTH_TOKEN"] for each in launches}
    for rank, each in enumerate(launches):
        head = next(int(text) for name, text in launches[0].env.items() if name == "MUSTER_PORT_RAY")
        assert each.env["RAY_ADDRESS"] == f"10.0.0.1:{head}"
        assert (each.env["RAY_AUTH_MODE"], each.secrets.masked) == ("token", (token.encode(),))
        assert each.role is not None
        assert each.role.command == ("/bin/sh", "/muster/config/ray.sh", "train")
        script = each.config_files["ray.sh"].decode()
        told = f"address=10.0.0.{rank + 1} cpus=8 gpus={gpus} nodes={size} rank={rank} port={head} limit=600"
        assert script.splitlines()[:2] == ["#!/bin/sh", told]


def test_the_token_of_ray_is_another_for_every_attempt() -> None:
    several = [gang(workers(1), framework=RAY, fence=Fence(key=key))[0] for key in (b"1", b"2", b"2")]
    tokens = [launched([each])[0].env["RAY_AUTH_TOKEN"] for each in several]
    assert tokens[0] != tokens[1] == tokens[2]
    assert len(tokens[0]) == 64


def test_the_node_of_ray_starts_before_an_entrypoint_of_the_job_and_behind_the_images() -> None:
    [order] = gang(workers(1), image="i", framework=RAY)
    [kept] = launched([order])
    [own] = launched([replace(order, role=replace(order.role, entrypoint=("tini", "--")))])
    assert kept.role is not None
    assert own.role is not None
    wrapper = ("/bin/sh", "/muster/config/ray.sh")
    assert (kept.role.entrypoint, kept.role.command) == (None, (*wrapper, "train"))
    assert (own.role.entrypoint, own.role.command) == ((), (*wrapper, "tini", "--", "train"))


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_finds_nothing_in_the_script_of_ray() -> None:
    script = framed("ray", workers(2))[1].config_files["ray.sh"].decode()
    words = ("shellcheck", "--shell=sh", "--exclude=SC2317", "-")  # to it, what a trap calls is never called
    said = subprocess.run(words, input=script, capture_output=True, text=True, check=False)
    assert said.stdout == ""
