"""Coordinator and agent as containers, as deploy/compose.yaml has them, on a machine that reaches no other network."""

import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e import images
from tests.e2e.waiting import until
from tests.house.generate_stubs import ROOT
from tests.machines.bundles import unpack
from tests.machines.conftest import Machines
from tests.machines.fleet import Machine

pytestmark = pytest.mark.machines

BASE = "base"
CHOSEN = {"MUSTER_BASE": BASE, "MUSTER_HOST": "localhost", "MUSTER_NODE": "node-1"}
LEFT_OUT = ("root", "usr/bin/containerd*", "usr/bin/docker*", "usr/lib/systemd", "usr/sbin/dockerd", "usr/share", "var")
WITHIN = 300.0
OPTIONS = {
    "ports": "--publish",
    "volumes": "--volume",
    "tmpfs": "--tmpfs",
    "cap_drop": "--cap-drop",
    "cap_add": "--cap-add",
    "security_opt": "--security-opt",
    "restart": "--restart",
    "entrypoint": "--entrypoint",
    "network_mode": "--network",
    "pid": "--pid",
}
"""Options of `docker run`, by their names in the Compose file."""
COMPOSES_OWN = {"image", "build", "command", "stop_grace_period", "read_only", "healthcheck", "depends_on", "profiles"}
"""What is said to Docker otherwise, or not at all."""


def _services() -> Mapping[str, Any]:
    text = (ROOT / "deploy" / "compose.yaml").read_text()
    filled = re.sub(r"\$\{(\w+):-[^}]*\}", lambda found: CHOSEN[found[1]], text)
    services: Mapping[str, Any] = yaml.safe_load(filled)["services"]
    return services


def _run_options(service: Mapping[str, Any]) -> Iterator[str]:
    """What Compose would say to Docker."""
    left = set(service) - COMPOSES_OWN - set(OPTIONS)
    assert left == set(), "the test does not know these"
    if service.get("read_only"):
        yield "--read-only"
    if "healthcheck" in service:
        _, *asking = service["healthcheck"]["test"]  # the first word says that these are words of a command
        yield f"--health-cmd={shlex.join(asking)}"
        yield "--health-interval=1s"
    for key, option in OPTIONS.items():
        values = service.get(key, [])
        for value in [values] if isinstance(values, str) else values:
            yield f"{option}={value.replace('./', '/root/deploy/', 1) if value.startswith('./') else value}"


def _start(machine: Machine, name: str) -> None:
    service = _services()[name]
    machine.run(
        "docker", "run", "--detach", f"--name={name}", *_run_options(service), service["image"], *service["command"]
    )


def _make_images(machine: Machine, bundle: Path) -> None:
    deploy = machine.file("/root/deploy")
    shutil.copytree(ROOT / "deploy", deploy)
    unpack(bundle, deploy / "bundle")
    packing = f"tar -C / --one-file-system {' '.join(f'--exclude=./{each}' for each in LEFT_OUT)} -c ."
    machine.run("sh", "-c", f"{packing} | docker import - {BASE}", within=WITHIN)
    for name, service in _services().items():
        if "build" not in service:  # it runs in the image of another one
            continue
        file, base = f"/root/deploy/{name}.Dockerfile", f"--build-arg=BASE={service['build']['args']['BASE']}"
        command = ("docker", "build", "--quiet", "--network=none", base, f"--file={file}", f"--tag={service['image']}")
        machine.run("env", "DOCKER_BUILDKIT=0", *command, "/root/deploy/bundle", within=WITHIN)


def _muster(machine: Machine, *words: str) -> str:
    return machine.run("docker", "exec", "coordinator", "muster", *words, within=WITHIN)


def _answers(machine: Machine) -> bool:
    return "coordinator serves" in machine.run("sh", "-c", "docker logs coordinator 2>&1")


def test_a_fleet_of_containers_runs_jobs_which_outlive_their_agent(machines: Machines, bundle: Path) -> None:
    (machine,) = machines(["alone"], "docker")
    _make_images(machine, bundle)
    busybox = images.busybox()
    machine.load(busybox)

    _start(machine, "coordinator")
    until(lambda: _answers(machine), within=WITHIN, what="the coordinator")
    said = machine.run("docker", "logs", "coordinator").split()
    fingerprint = next(word for word in said if word.startswith("sha256:"))
    token = "/var/lib/muster/coordinator/admin-token"
    _muster(machine, "login", "127.0.0.1:7460", "--authority", fingerprint, "--token-file", token)
    machine.file("/root/deploy/join-token").write_text(_muster(machine, "nodes", "token", "create"))
    authority = machine.run("docker", "exec", "coordinator", "cat", "/var/lib/muster/coordinator/trust/authority.pem")
    machine.file("/root/deploy/authority.pem").write_text(authority)
    for name in ("agent", "console"):
        _start(machine, name)
    until(lambda: "ready" in _muster(machine, "nodes"), within=WITHIN, what="the node")

    said_by_all = _muster(
        machine, "run", "-N", "2", "--image", busybox.reference, "--", "sh", "-c", "echo $RANK of $WORLD_SIZE"
    )
    assert sorted(said_by_all.splitlines()) == ["[0] 0 of 2", "[1] 1 of 2"]

    waiting = ("sh", "-c", "until [ -e /muster/outputs/go ]; do sleep 0.1; done; echo $MUSTER_ATTEMPT")
    job = _muster(machine, "run", "--detach", "--image", busybox.reference, "--", *waiting).split()[0]
    until(lambda: "running" in _muster(machine, "jobs"), within=WITHIN, what="the start of the job")
    machine.run("docker", "restart", "agent")
    until(lambda: "ready" in _muster(machine, "nodes"), within=WITHIN, what="the node")
    machine.run("sh", "-c", "docker exec $(docker ps --quiet --filter label=muster.execution) touch /muster/outputs/go")
    _muster(machine, "wait", job)
    assert _muster(machine, "logs", job) == "[0] 1\n"

    healthy = "{{.State.Health.Status}}"
    for name in ("coordinator", "agent", "console"):
        until(
            lambda name=name: machine.run("docker", "inspect", f"--format={healthy}", name) == "healthy\n",  # type: ignore[misc]  # mypy infers no lambda with a default
            within=WITHIN,
            what=f"the health of the {name}",
        )
    who = machine.run("docker", "exec", "coordinator", "id", "-u")
    assert who == "10001\n"
