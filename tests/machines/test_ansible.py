"""From machines with nothing but sshd, Python and Docker to a fleet that runs jobs, and back, with our playbooks.

The machines reach each other and nobody else. The tests go on with what the one before left.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from muster.trust.tokens import API_PREFIX, JOIN_PREFIX
from tests.e2e import images
from tests.e2e.waiting import until
from tests.machines.conftest import Machines
from tests.machines.fleet import Machine, Yard
from tests.machines.playbooks import Control, PlaybookError, Run

pytestmark = pytest.mark.machines

OLD, NEW = "0.1.0", "0.1.1"
STARTED = ["docker", "inspect", "--format", "{{.State.StartedAt}} {{.State.Running}}"]
HOLD = ["sh", "-c", "while [ ! -e /tmp/go ]; do sleep 0.2; done"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A coordinator and two agents, and the control node."""

    coordinator: Machine
    agents: tuple[Machine, Machine]
    control: Control
    first_run: Run
    before: str
    """When the container that ran already has been started."""

    def muster(self, *words: str, stdin: str | None = None) -> str:
        """What the command line prints for the admin."""
        return self.coordinator.run("muster-admin", *words, stdin=stdin)

    def ask(self, *words: str) -> Any:
        """The same as a value."""
        return json.loads(self.muster(*words, "--output", "json"))

    def submit(self, name: str, command: Sequence[str]) -> str:
        """The id of a gang of one container on each agent."""
        image = images.busybox().reference
        job = {"name": name, "workers": 2, "placement": "spread", "image": image, "pull": "never", "command": command}
        return self.muster("submit", "-", stdin=json.dumps(job)).strip()

    def await_phase(self, job: str, phase: str) -> None:
        """Return when the job is there."""
        until(lambda: self.ask("show", job)["phase"] == phase, within=300, what=f"{phase} of {job}")

    def containers(self) -> dict[str, str]:
        """Containers of jobs, by the agents that have one: id and when it started."""
        found = {}
        for agent in self.agents:
            for each in agent.run("docker", "ps", "--quiet", "--filter", "label=muster.execution").split():
                found[agent.name] = each + agent.run(*STARTED, each)
        return found


@pytest.fixture(scope="module")
def site(yard: Yard, bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """What site.yml makes of bare machines, one of which already has Docker's settings and a container of its own."""
    with yard.machines(["coord"], "bare") as (coordinator,), yard.machines(["one", "two"], "docker") as (one, two):
        for each in (one, two):
            each.load(images.busybox())
        one.file("/etc/docker").mkdir(exist_ok=True)
        one.file("/etc/docker/daemon.json").write_text('{"labels": ["rack=7"], "log-opts": {"max-file": "5"}}')
        one.run("docker", "run", "--detach", "--name", "theirs", images.busybox().reference, "/bin/sleep", "100000")
        groups = {"muster_coordinator": [coordinator], "muster_console": [coordinator], "muster_agents": [one, two]}
        settings = {"muster_coordinator_bundle": str(bundle), "muster_agent_bundle": ""}  # from the coordinator
        control = Control(tmp_path_factory.mktemp("control"), groups, settings)
        before = one.run(*STARTED, "theirs")
        first = control.play("site.yml", "-vv")
        yield Site(coordinator=coordinator, agents=(one, two), control=control, first_run=first, before=before)


def test_bare_machines_become_a_fleet_that_runs_its_first_job(site: Site) -> None:
    job = site.submit("first", ["sh", "-c", "echo rank $RANK of $WORLD_SIZE"])
    site.await_phase(job, "succeeded")
    assert sorted(site.muster("logs", job).split("\n"))[-2:] == ["[0] rank 0 of 2", "[1] rank 1 of 2"]
    assert [node["name"] for node in site.ask("nodes")] == ["one", "two"]


def test_tokens_are_neither_shown_nor_left_on_the_nodes(site: Site) -> None:
    assert JOIN_PREFIX not in site.first_run.output
    assert API_PREFIX not in site.first_run.output
    for agent in site.agents:
        assert not agent.file("/etc/muster/join-token").exists()
        assert JOIN_PREFIX not in agent.journal()


def test_a_console_serves_the_fleet_over_http(site: Site) -> None:
    status = ("systemctl", "show", "--property=ActiveState,StatusText,User", "muster-console")
    assert sorted(site.coordinator.run(*status).split("\n"))[-3:] == [
        "ActiveState=active",
        "StatusText=serves http://127.0.0.1:7464",
        "User=muster-console",
    ]


def test_a_second_run_changes_nothing(site: Site) -> None:
    again = site.control.play("site.yml")
    assert again.what_changed == []
    assert again.changed == {"coord": 0, "one": 0, "two": 0}


def test_a_dry_run_changes_nothing_either(site: Site) -> None:
    assert site.control.play("site.yml", "--check", "--diff").changed == {"coord": 0, "one": 0, "two": 0}


def test_docker_keeps_its_own_settings_and_its_containers(site: Site) -> None:
    one, two = site.agents
    assert json.loads(one.file("/etc/docker/daemon.json").read_text()) == {
        "labels": ["rack=7"],
        "live-restore": True,
        "log-driver": "json-file",
        "log-opts": {"max-file": "3", "max-size": "50m"},
    }
    assert one.run(*STARTED, "theirs") == site.before
    for agent in (one, two):
        assert agent.run("docker", "info", "--format", "{{.LiveRestoreEnabled}}") == "true\n"
    two.run("docker", "run", "--name", "limited", images.busybox().reference, "/bin/true")
    assert "max-size:50m" in two.run("docker", "inspect", "--format", "{{.HostConfig.LogConfig.Config}}", "limited")


def test_a_node_that_should_have_gpus_is_told_what_it_lacks(site: Site) -> None:
    with pytest.raises(PlaybookError, match=r"one needs the NVIDIA driver 525\.60 or newer"):
        site.control.play("site.yml", "--limit", "one", nvidia_expected="yes")


def test_docker_is_taught_gpus_once(site: Site) -> None:
    one, _ = site.agents
    _pretend_driver(one)
    assert (
        "nvidia : Have Docker know the runtime"
        in site.control.play("site.yml", "--limit", "one", nvidia_expected="yes").what_changed
    )
    assert "nvidia" in one.run("docker", "info", "--format", "{{json .Runtimes}}")
    assert one.run(*STARTED, "theirs") == site.before
    assert site.control.play("site.yml", "--limit", "one", nvidia_expected="yes").what_changed == []


def test_settings_of_agents_are_theirs_and_the_units(site: Site) -> None:
    labels, unit = {"rack": "7"}, {"Service": {"MemoryHigh": "4G"}}
    site.control.play("site.yml", "--limit", "two", muster_agent_labels=labels, muster_agent_unit=unit)
    _, two = site.agents
    assert site.ask("nodes", "show", "two")["inventory"]["labels"] == {"rack": "7"}
    assert two.run("systemctl", "show", "--property=MemoryHigh", "muster-agent").strip() == f"MemoryHigh={4 << 30}"


def test_agents_that_lose_the_coordinator_go_on_and_connect_to_the_next_one(site: Site) -> None:
    process = ("systemctl", "show", "--property=MainPID,NRestarts", "muster-agent")
    before = [agent.run(*process) for agent in site.agents]
    site.coordinator.run("systemctl", "kill", "--signal=KILL", "muster-coordinator")
    site.coordinator.run("systemctl", "restart", "muster-coordinator")  # returns once it serves
    until(
        lambda: [node["last_seen_at"] is not None for node in site.ask("nodes")] == [True, True],
        within=300,
        what="both nodes at the next coordinator",
    )
    assert [agent.run(*process) for agent in site.agents] == before


def test_an_upgrade_leaves_gangs_alone(site: Site, newer_bundle: Path) -> None:
    job = site.submit("through", HOLD)
    site.await_phase(job, "running")
    before = site.containers()
    assert set(before) == {"one", "two"}
    site.control.play("upgrade.yml", muster_coordinator_bundle=str(newer_bundle))
    for each in (site.coordinator, *site.agents):
        assert each.run("muster", "version").split()[-1] == NEW
        assert each.run("readlink", "/opt/muster/current") == f"{NEW}\n"
    assert site.containers() == before
    assert site.ask("show", job)["phase"] == "running"
    assert len(site.ask("show", job)["attempts"]) == 1
    _let_go(site)
    site.await_phase(job, "succeeded")


def test_a_drained_node_takes_nothing_until_it_may_again(site: Site) -> None:
    job = site.submit("last", HOLD)
    site.await_phase(job, "running")
    with pytest.raises(PlaybookError, match="not drained within 1s"):
        site.control.play("drain.yml", "--limit", "one", muster_agent_drain_timeout="1s")
    _let_go(site)
    site.await_phase(job, "succeeded")
    assert site.control.play("drain.yml", "--limit", "one").changed["one"] == 0  # cordoned, and nothing runs there
    assert site.ask("nodes", "show", "one")["cordon"]["reason"] == "ansible"
    site.control.play("drain.yml", "--limit", "one", muster_drain_undo=True)
    assert site.ask("nodes", "show", "one")["cordon"] is None


def test_removal_leaves_nothing_of_muster(site: Site) -> None:
    site.control.play("remove.yml", "--limit", "one,coord", muster_agent_purge=True)
    one, _ = site.agents
    left = [path for path in ("/opt/muster", "/etc/muster", "/var/lib/muster") if one.file(path).exists()]
    assert left == []
    assert "muster" not in one.file("/etc/passwd").read_text()
    assert one.run(*STARTED, "theirs") == site.before
    assert [node["name"] for node in site.ask("nodes")] == ["two"]
    assert site.control.play("remove.yml", "--limit", "one,coord", muster_agent_purge=True).what_changed == []
    site.control.play("remove.yml", muster_remove_coordinator=True)
    assert not site.coordinator.file("/etc/systemd/system/muster-console.service").exists()
    assert site.coordinator.file("/var/lib/muster/coordinator/trust/authority.key").exists()
    assert not site.coordinator.file("/opt/muster").exists()


def test_docker_is_installed_where_there_is_none(machines: Machines, tmp_path: Path) -> None:
    (node,) = machines(["node"], "bare", online=True)
    playbook = tmp_path / "docker.yml"
    playbook.write_text("[{name: Docker, hosts: all, become: true, gather_facts: false, roles: [docker]}]")
    control = Control(tmp_path, {"nodes": [node]}, {})
    assert "docker : Install Docker" in control.play(str(playbook)).what_changed
    assert node.run("docker", "info", "--format", "{{.LiveRestoreEnabled}} {{.LoggingDriver}}") == "true json-file\n"
    assert control.play(str(playbook)).what_changed == []


def _pretend_driver(machine: Machine) -> None:
    """Programs that answer as NVIDIA's would; the toolkit's writes what it would write."""
    runtime = {"runtimes": {"nvidia": {"args": [], "path": "/usr/sbin/runc"}}}
    written = (
        f"import json; p = '/etc/docker/daemon.json'; d = json.load(open(p)) | {runtime!r}; json.dump(d, open(p, 'w'))"
    )
    programs = {
        "nvidia-smi": 'case "$*" in *driver_version*) echo 570.86.15;; *) echo Enabled;; esac',
        "nvidia-ctk": f'[ "$1" = runtime ] && exec python3 -c "{written}"; echo 1.17.0',
    }
    for name, text in programs.items():
        file = machine.file(f"/usr/local/bin/{name}")
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)


def _let_go(site: Site) -> None:
    for agent in site.agents:
        for each in agent.run("docker", "ps", "--quiet", "--filter", "label=muster.execution").split():
            agent.run("docker", "exec", each, "/bin/touch", "/tmp/go")
