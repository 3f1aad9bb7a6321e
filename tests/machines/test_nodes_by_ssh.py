"""From a bare machine to a node and back, by `muster nodes add|check|upgrade|remove` over SSH."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.waiting import until
from tests.machines.administrator import Administrator, administrator
from tests.machines.bundles import newer
from tests.machines.conftest import Machines
from tests.machines.fleet import ADMINISTRATOR, Machine, Yard

pytestmark = pytest.mark.machines

TRACES = "/opt/muster /etc/muster /var/lib/muster /etc/systemd/system/muster-agent.service /usr/local/bin/muster"
NEWER, WORSE = "99.0.0", "99.1.0"


@pytest.fixture
def admin(yard: Yard, tmp_path: Path) -> Iterator[Administrator]:
    with administrator(yard, tmp_path / "admin") as somebody:
        yield somebody


def _traces(machine: Machine) -> list[str]:
    found = machine.run(
        "sh", "-c", f"ls -d {TRACES} /var/tmp/muster-* 2>/dev/null; getent passwd | grep muster || true"
    )
    return found.split()


def _change_the_authority(admin: Administrator) -> None:
    """Have the fleet get another authority, to which all nodes move by themselves."""

    def moved(stage: str) -> bool:
        status = admin.muster("authority", "show", "-o", "json").document
        return (status["stage"], status["waiting"], status["away"]) == (stage, [], [])

    assert admin.muster("authority", "rotate").code == 0
    until(lambda: moved("issuing"), within=300, what="all nodes have certificates of the next authority")
    done = admin.muster("authority", "finish")
    assert done.code == 0, str(done)
    until(lambda: moved("steady"), within=300, what="all nodes have forgotten the former authority")


def test_a_bare_machine_becomes_a_node_that_runs_a_job_and_a_second_run_changes_nothing(
    machines: Machines, admin: Administrator, bundle: Path
) -> None:
    (machine,) = machines(["bare"])
    admin.knows([machine])
    uploaded = admin.muster("bundles", "upload", str(bundle))
    assert uploaded.code == 0, str(uploaded)
    order = ("nodes", "add", f"{ADMINISTRATOR}@{machine.address}", "--pool", "p", "--yes")
    first = admin.muster(*order, "--setting", "processes=true", "-o", "json")
    assert first.code == 0, str(first)
    assert [node["status"] for node in first.document["nodes"]] == ["installed"]
    job = admin.muster("run", "--", "hostname")
    assert job.code == 0, str(job)
    assert "bare" in job.out + job.err
    node = admin.muster("nodes", "bare", "-o", "json").document
    assert (node["state"], node["inventory"]["labels"]) == ("ready", {"pool": "p"})

    before = machine.run("sh", "-c", "find /opt/muster /etc -newermt 1990-01-01 -printf '%p %T@\\n' | sort | sha256sum")
    started = machine.run("systemctl", "show", "muster-agent", "-p", "ExecMainStartTimestampMonotonic")
    second = admin.muster(*order, "--setting", "processes=true")
    assert (second.code, second.out.splitlines()[-1]) == (0, "unchanged"), str(second)
    assert (
        machine.run("sh", "-c", "find /opt/muster /etc -newermt 1990-01-01 -printf '%p %T@\\n' | sort | sha256sum")
        == before
    )
    assert machine.run("systemctl", "show", "muster-agent", "-p", "ExecMainStartTimestampMonotonic") == started

    _change_the_authority(admin)
    assert machine.run("systemctl", "show", "muster-agent", "-p", "ExecMainStartTimestampMonotonic") == started
    assert admin.muster("nodes", "bare", "-o", "json").document["state"] == "ready"

    assert admin.muster("nodes", "revoke", "bare").code == 0
    again = admin.muster(*order, "--setting", "processes=true", "-o", "json")
    assert (again.code, [node["status"] for node in again.document["nodes"]]) == (0, ["installed"]), str(again)

    gone = admin.muster("nodes", "remove", "bare", "--ssh", f"{ADMINISTRATOR}@{machine.address}", "--purge", "--yes")
    assert gone.code == 0, str(gone)
    assert _traces(machine) == []
    assert admin.muster("nodes", "bare").code == 4


def test_what_fails_or_is_interrupted_in_the_middle_leaves_nothing_behind(
    machines: Machines, admin: Administrator, bundle: Path
) -> None:
    (machine,) = machines(["bare"])
    admin.knows([machine])
    order = ("nodes", "add", f"root@{machine.address}", "--bundle", str(bundle), "--yes", "-o", "json")

    stopped = admin.interrupted(*order, at="installs")
    assert stopped.code == 130, str(stopped)
    assert [(node["status"], node["left"]) for node in stopped.document["nodes"]] == [("interrupted", [])]
    assert _traces(machine) == []

    _refuse_to_start(machine, "false")
    failed = admin.muster(*order)
    assert failed.code == 1, str(failed)
    assert [(node["status"], node["left"]) for node in failed.document["nodes"]] == [("failed", [])]
    assert "the installer failed" in failed.document["nodes"][0]["message"]
    assert _traces(machine) == []
    assert admin.muster("nodes", "-o", "json").document == []
    tokens = admin.muster("nodes", "token", "list", "-o", "json").document
    assert [token["revoked_at"] is not None for token in tokens] == [True, True]


def test_a_gang_runs_on_while_its_node_is_upgraded_and_a_version_that_does_not_start_is_taken_back(
    machines: Machines, admin: Administrator, bundle: Path
) -> None:
    (machine,) = machines(["bare"])
    admin.knows([machine])
    host = f"root@{machine.address}"
    added = admin.muster("nodes", "add", host, "--bundle", str(bundle), "--setting", "processes=true", "--yes")
    assert added.code == 0, str(added)
    running = admin.muster("run", "--detach", "-N", "2", "--", "sleep", "98765")
    assert running.code == 0, str(running)
    until(lambda: _runs(admin, running.out.split()[-1], machine), within=300, what="the gang to run")
    before = _sleepers(machine)

    refused = admin.muster("nodes", "remove", "bare", "--ssh", host, "--yes")
    assert (refused.code, "2 executions run on bare" in refused.err) == (5, True), str(refused)

    upgraded = admin.muster("nodes", "upgrade", "bare", "--bundle", str(newer(bundle, NEWER)), "--yes", "-o", "json")
    assert upgraded.code == 0, str(upgraded)
    (node,) = upgraded.document["nodes"]
    assert (node["status"], node["message"]) == ("upgraded", "2 executions went on")
    assert admin.muster("nodes", "bare", "-o", "json").document["agent_version"] == NEWER
    assert _sleepers(machine) == before

    _refuse_to_start(machine, f'[ "$(readlink /opt/muster/current)" != {WORSE} ]')
    failed = admin.muster("nodes", "upgrade", "bare", "--bundle", str(newer(bundle, WORSE)), "--yes", "-o", "json")
    assert failed.code == 1, str(failed)
    assert failed.document["nodes"][0]["status"] == "failed"
    until(
        lambda: admin.muster("nodes", "bare", "-o", "json").document["agent_version"] == NEWER,
        within=300,
        what="the version before",
    )
    assert machine.run("readlink", "/opt/muster/current").strip() == NEWER
    assert _sleepers(machine) == before

    checked = admin.muster("nodes", "check", "bare", "-o", "json")
    found = {finding["id"]: finding["severity"] for finding in checked.document["hosts"][0]["findings"]}
    assert (checked.code, found["muster"], found["docker"], found["coordinator"]) == (0, "ok", "warning", "ok")

    gone = admin.muster("nodes", "remove", "bare", "--ssh", host, "--purge", "--force", "--yes")
    assert gone.code == 0, str(gone)
    assert (_traces(machine), _sleepers(machine)) == ([], [])


def test_an_inventory_of_machines_without_python_becomes_nodes_one_behind_the_other(
    machines: Machines, admin: Administrator, frozen_bundle: Path
) -> None:
    first, second = machines(["one", "two"], "nopython")
    admin.knows([first, second])
    inventory = admin.home / "inventory.yaml"
    inventory.write_text(
        "defaults:\n  user: root\n  pool: p\n  agent: {processes: true}\nnodes:\n"
        f"  - host: {first.address}\n  - {{host: {second.address}, jump: {first.address}, labels: {{rack: a7}}}}\n"
    )
    order = ("nodes", "add", "-f", str(inventory), "--bundle", str(frozen_bundle), "--yes", "-o", "json")
    planned = admin.muster(*order, "--dry-run")
    assert [node["status"] for node in planned.document["nodes"]] == ["planned", "planned"], str(planned)
    assert (_traces(first), _traces(second)) == ([], [])

    added = admin.muster(*order)
    assert [node["status"] for node in added.document["nodes"]] == ["installed", "installed"], str(added)
    labels = {node["name"]: node["inventory"]["labels"] for node in admin.muster("nodes", "-o", "json").document}
    assert labels == {"one": {"pool": "p"}, "two": {"pool": "p", "rack": "a7"}}
    job = admin.muster("run", "-N", "2", "--placement", "spread", "--", "hostname")
    assert (job.code, "one" in job.out, "two" in job.out) == (0, True, True), str(job)


def test_a_machine_that_cannot_be_a_node_is_told_why_and_not_touched(
    machines: Machines, admin: Administrator, bundle: Path
) -> None:
    (machine,) = machines(["old"], "nopython")
    admin.knows([machine])
    refused = admin.muster("nodes", "add", f"root@{machine.address}", "--bundle", str(bundle), "--yes", "-o", "json")
    (node,) = refused.document["nodes"]
    assert (refused.code, node["status"]) == (1, "refused"), str(refused)
    assert {finding["id"] for finding in node["findings"] if finding["severity"] == "error"} == {"python"}
    assert _traces(machine) == []


def _runs(admin: Administrator, job: str, machine: Machine) -> bool:
    shown = admin.muster("show", job, "-o", "json")
    assert shown.document["phase"] in {"queued", "preparing", "running"}, f"{shown}\n{machine.journal('muster-agent')}"
    return shown.document["phase"] == "running" and len(_sleepers(machine)) == 2


def _sleepers(machine: Machine) -> list[str]:
    return machine.run("sh", "-c", "pgrep -fx 'sleep 98765' || true").split()


def _refuse_to_start(machine: Machine, unless: str) -> None:
    """From now on the agent's unit only starts if a command of the shell says so."""
    directory = "/etc/systemd/system/muster-agent.service.d"
    text = f"[Service]\nExecStartPre=/bin/sh -c '{unless}'\n"
    machine.run(
        "sh", "-c", f"mkdir -p {directory} && cat >{directory}/test.conf && systemctl daemon-reload", stdin=text
    )
