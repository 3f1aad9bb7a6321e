"""From bare machines to the first job with nothing but a bundle: no internet, and no Python where there is none."""

import json
import shutil
from pathlib import Path

import pytest

from coordinator.store.schema import VERSION
from muster.bundle.archive import read_bundle
from tests.e2e.waiting import until
from tests.machines.bundles import altered, newer, unpack
from tests.machines.conftest import Machines
from tests.machines.fleet import CommandError, Machine

pytestmark = pytest.mark.machines

SETTINGS = 'coordinator = "127.0.0.1:7460"\njoin-file = "/etc/muster/join-token"\nprocesses = true\n'
WITHIN = 300.0
STATE = "/var/lib/muster"
CONSOLE = 'coordinator = "127.0.0.1:7460"\nauthority = "/etc/muster/authority.pem"\n'
UNITS = tuple(f"muster-{each}.service" for each in ("agent", "console", "coordinator", "depot", "relay"))
TRACES = ("/opt/muster", "/etc/muster", STATE, "/run/muster", "/etc/systemd/system/muster-agent.service")


@pytest.fixture(scope="module")
def bundle(frozen_bundle: Path) -> Path:
    """A bundle for machines with Python and without."""
    return frozen_bundle


@pytest.fixture(scope="module")
def newer_bundle(bundle: Path) -> Path:
    """A newer bundle, for machines with Python."""
    return newer(altered(bundle, "only-wheels", _without_frozen), "99.1")


def _without_frozen(directory: Path) -> None:
    shutil.rmtree(directory / "frozen")


def _unpacked(machine: Machine, bundle: Path) -> str:
    at = f"/root/{bundle.stem}"
    unpack(bundle, machine.file(at))
    return f"{at}/install.sh"


def _install(machine: Machine, installer: str, *words: str) -> list[str]:
    return machine.run("sh", installer, *words, within=WITHIN).splitlines()


def _refused(machine: Machine, installer: str, *words: str) -> str:
    with pytest.raises(CommandError) as refused:
        _install(machine, installer, *words)
    return refused.value.stderr


def _begin_fleet(machine: Machine, installer: str) -> None:
    """A coordinator and a node on one machine."""
    assert _install(machine, installer, "coordinator")[-1] == "changed"
    said = machine.run("journalctl", "--unit=muster-coordinator", "--output=cat")
    fingerprint = next(word for line in said.splitlines() for word in line.split() if word.startswith("sha256:"))
    token = f"{STATE}/coordinator/admin-token"
    machine.run("muster", "login", "127.0.0.1:7460", "--authority", fingerprint, "--token-file", token)
    machine.file("/root/join-token").write_text(machine.run("muster", "nodes", "token", "create"))
    machine.file("/root/agent.toml").write_text(SETTINGS)
    wanted = ("agent", "--config-from", "/root/agent.toml", "--join-file", "/root/join-token")
    assert _install(machine, installer, *wanted)[-1] == "changed"
    assert _install(machine, installer, *wanted)[-1] == "unchanged"


def _add_console(machine: Machine, installer: str) -> None:
    """A console on the machine of the coordinator, which is asked over loopback."""
    assert _install(machine, installer, "console")[-2:] == [
        "not started: say in /etc/muster/console.toml where the coordinator is, then run this again",
        "changed",
    ]
    machine.run("install", "-m", "0644", f"{STATE}/coordinator/trust/authority.pem", "/etc/muster/authority.pem")
    machine.file("/root/console.toml").write_text(CONSOLE)
    wanted = ("console", "--config-from", "/root/console.toml")
    assert _install(machine, installer, *wanted)[-1] == "changed"
    assert _install(machine, installer, *wanted)[-1] == "unchanged"
    asking = (
        "exec 3<>/dev/tcp/127.0.0.1/7464; printf 'GET /readyz HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3; cat <&3"
    )
    until(lambda: " 200 " in machine.run("bash", "-c", asking), within=WITHIN, what="a console with its coordinator")


@pytest.mark.parametrize(("flavour", "method"), [("bare", "venv"), ("nopython", "frozen")])
def test_a_machine_without_internet_becomes_a_fleet_runs_a_job_and_is_rid_of_it_again(
    machines: Machines, bundle: Path, flavour: str, method: str
) -> None:
    (machine,) = machines(["alone"], flavour)
    installer = _unpacked(machine, bundle)
    _begin_fleet(machine, installer)

    assert machine.run("muster", "run", "--", "id", "-u") == "[0] 1879048192\n"  # the first user for processes alone
    assert _install(machine, installer, "coordinator") == ["unchanged"]
    assert machine.file("/opt/muster/current/.bundle").read_text().split()[-1] == method
    assert not machine.file("/etc/muster/join-token").exists()
    _add_console(machine, installer)
    for unit in UNITS:
        assert machine.run("systemd-analyze", "verify", f"/etc/systemd/system/{unit}") == ""
        assert machine.run("systemctl", "show", "--property=StatusText", "--value", unit).strip() != ""

    for role in ("console", "agent", "coordinator"):
        assert _install(machine, "/opt/muster/current/install.sh", "remove", role, "--purge")[-1] == "changed"
    assert [path for path in TRACES if machine.run("sh", "-c", f"ls -d {path} 2>/dev/null || true")] == []
    assert machine.run("sh", "-c", "getent passwd | grep muster || true") == ""
    assert machine.run("sh", "-c", "ps axo args | grep '[m]uster-\\|[a]gent.fencing.killer' || true") == ""
    assert machine.run("sh", "-c", "ls /usr/local/bin") == ""


def _main_process(machine: Machine, unit: str) -> int:
    """While it serves."""
    said = machine.run("systemctl", "show", "--property=MainPID,ActiveState", "--value", unit).split()
    return int(next(word for word in said if word.isdigit())) if "active" in said else 0


def _watched_closely(machine: Machine, unit: str) -> None:
    """Have a unit watched as it is, only sooner."""
    directory = machine.file(f"/etc/systemd/system/{unit}.d")
    directory.mkdir()
    (directory / "soon.conf").write_text("[Service]\nWatchdogSec=5\nTimeoutAbortSec=1\n")
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "restart", unit)


def test_programs_that_hang_are_started_again_and_executions_go_on(machines: Machines, bundle: Path) -> None:
    (machine,) = machines(["alone"])
    installer = _unpacked(machine, bundle)
    _begin_fleet(machine, installer)
    _add_console(machine, installer)
    for unit in UNITS:
        _watched_closely(machine, unit)
    job = machine.run("muster", "run", "--detach", "--", "sh", "-c", "until [ -e /dev/shm/go ]; do sleep 0.1; done")
    job = job.split()[0]
    until(lambda: "running" in machine.run("muster", "jobs"), within=WITHIN, what="the start of the job")
    for unit in UNITS:
        hung = _main_process(machine, unit)
        machine.run("kill", "-STOP", str(hung))
        until(
            lambda unit=unit, hung=hung: _main_process(machine, unit) not in {0, hung},  # type: ignore[misc]  # mypy infers no lambda with a default
            within=WITHIN,
            what=f"another {unit}",
        )
        assert "Watchdog timeout" in machine.journal(unit)
    machine.run("touch", "/dev/shm/go")
    machine.run("muster", "wait", job)
    assert len(json.loads(machine.run("muster", "show", job, "--output", "json"))["attempts"]) == 1


def test_a_gang_runs_on_while_its_node_goes_to_another_version_and_back(
    machines: Machines, bundle: Path, newer_bundle: Path
) -> None:
    (machine,) = machines(["alone"])
    old = _unpacked(machine, bundle)
    _begin_fleet(machine, old)
    job = machine.run("muster", "run", "--detach", "--", "sh", "-c", "until [ -e /dev/shm/go ]; do sleep 0.1; done")
    job = job.split()[0]
    until(lambda: "running" in machine.run("muster", "jobs"), within=WITHIN, what="the start of the job")

    assert _install(machine, _unpacked(machine, newer_bundle), "agent")[-1] == "changed"
    assert machine.run("muster", "version") == "99.1\n"
    assert _install(machine, "/opt/muster/current/install.sh", "--rollback", "agent")[-1] == "changed"
    assert machine.run("muster", "version") == f"{read_bundle(bundle).version}\n"

    machine.run("touch", "/dev/shm/go")
    machine.run("muster", "wait", job)


def _that_does_not_start(directory: Path) -> None:
    unit = directory / "units" / "muster-agent.service"
    start = "ExecStart=/opt/muster/current/bin/muster-agent"
    unit.write_text(unit.read_text().replace(start, "ExecStart=/bin/false"))


def test_a_version_that_does_not_start_is_taken_back(machines: Machines, bundle: Path, newer_bundle: Path) -> None:
    (machine,) = machines(["alone"])
    _begin_fleet(machine, _unpacked(machine, bundle))
    broken = _unpacked(machine, altered(newer_bundle, "broken", _that_does_not_start))
    said = _refused(machine, broken, "agent")
    assert "muster-agent.service does not start" in said
    assert f"going back to version {read_bundle(bundle).version}" in said
    assert machine.run("muster", "version") == f"{read_bundle(bundle).version}\n"
    assert machine.run("systemctl", "is-active", "muster-agent", "muster-coordinator") == "active\nactive\n"
    assert machine.run("muster", "run", "--", "echo", "well") == "[0] well\n"


MIGRATION = f"""
from alembic import op

revision, down_revision, branch_labels, depends_on = "9999", "{VERSION}", None, None


def upgrade() -> None:
    op.execute("CREATE TABLE later (name TEXT)")
"""


def _that_fails_once_it_has_converted(code: str) -> str:
    end = "        engine.dispose()\n"
    assert code.count(end) == 1
    return code.replace(end, f"{end}    raise StoreError('made to fail')\n")


def test_a_coordinator_that_converts_its_database_and_does_not_start_gives_it_back_to_the_one_before(
    machines: Machines, bundle: Path
) -> None:
    (machine,) = machines(["alone"])
    _begin_fleet(machine, _unpacked(machine, bundle))
    wheels = altered(bundle, "only-wheels-again", _without_frozen)
    edits = {
        "coordinator/store/schema.py": lambda code: code.replace(f'VERSION = "{VERSION}"', 'VERSION = "9999"'),
        "coordinator/store/schema_version.py": _that_fails_once_it_has_converted,
    }
    converting = newer(wheels, "99.2", edits, {"coordinator/store/migrations/versions/v9999_later.py": MIGRATION})
    said = _refused(machine, _unpacked(machine, converting), "coordinator")
    version = read_bundle(bundle).version
    assert f"version 99.2 had converted the coordinator's database; version {version} gets its copy of" in said
    assert machine.run("muster", "version") == f"{version}\n"
    until(lambda: "READY" in machine.run("muster", "nodes").upper(), within=WITHIN, what="the node")
    assert machine.run("muster", "run", "--", "echo", "well") == "[0] well\n"
    assert machine.file(f"{STATE}/coordinator/coordinator.db.after-99.2").exists()
    assert not machine.file(f"{STATE}/coordinator/coordinator.db.before-v9999").exists()


def test_what_cannot_be_installed_is_said_and_nothing_is_left(machines: Machines, bundle: Path) -> None:
    (machine,) = machines(["alone"], "nopython")
    said = _refused(machine, _unpacked(machine, altered(bundle, "wheels", _without_frozen)), "agent")
    assert "this machine cannot run what is in the bundle" in said
    assert "it has no Python" in said
    assert "the bundle brings no Python for x86_64 along" in said
    installer = _unpacked(machine, bundle)
    with machine.file(installer).with_name("units").joinpath("muster-agent.service").open("a") as unit:
        unit.write("# and more\n")
    assert "the bundle was changed or did not arrive whole" in _refused(machine, installer, "agent")
    assert machine.run("sh", "-c", "ls /opt/muster /etc/systemd/system | grep -c muster- || true") == "0\n"
    assert machine.run("sh", "-c", "getent passwd | grep muster || true") == ""
