"""The installer's way back, on a machine whose systemd is a small program: versions and the coordinator's database."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

INSTALLER = Path(__file__).parents[2] / "muster" / "bundle" / "install.sh"

SYSTEMCTL = """#!/bin/sh
# Starts coordinators: version 2.0 converts the database, and version 1.0 refuses what is newer than it.
echo "$*" >>{root}/asked
state={root}/state/coordinator
case "$1" in
  is-active | is-enabled | -q) exit 0 ;;
  restart) ;;
  *) exit 0 ;;
esac
case "$2 $(readlink {root}/opt/current)" in
  "muster-coordinator.service 1.0") exec grep -q "of 1.0" $state/coordinator.db ;;
  "muster-coordinator.service 2.0")
    if [ ! -e {root}/alike ] && grep -q "of 1.0" $state/coordinator.db; then
      cp $state/coordinator.db $state/coordinator.db.before-v5
      echo "converted, of 2.0" >$state/coordinator.db
      echo "not in it yet" >$state/coordinator.db-wal
    fi
    touch $state/coordinator.running
    [ ! -e {root}/broken ] ;;
  *) [ ! -e {root}/broken-agent ] ;;
esac
"""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine with versions 1.0 and 2.0, of which 1.0 is in use."""

    root: Path

    @property
    def state(self) -> Path:
        return self.root / "state" / "coordinator"

    def run(self, script: str) -> subprocess.CompletedProcess[str]:
        """The installer's functions for this machine, and then what is given."""
        functions = INSTALLER.read_text().replace('\nmain "$@"\n', "\n")
        places = f"PREFIX={self.root}/opt STATE={self.root}/state UNITS={self.root}/units ETC={self.root}/etc"
        script = f"{functions}\n{places} role=coordinator restore= signers=\ntrap finish EXIT\n{script}\n"
        path = f"{self.root}/bin:/usr/local/bin:/usr/bin:/bin"
        return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False, env={"PATH": path})

    def upgrade(self, role: str = "coordinator") -> subprocess.CompletedProcess[str]:
        """Upgrade to 2.0; what starts the services, and what happens where they do not start."""
        return self.run(f"role={role}\nswitch_version 2.0\nrestart_all || refuse_start\nswitched_from=")

    def go_back(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Go back to the version before, as far as that is possible without systemd's directory."""
        return self.run(f"role=cli {' '.join(options)}\nrollback_role\nswitched_from=")

    @property
    def version(self) -> str:
        return str((self.root / "opt" / "current").readlink())

    @property
    def database(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.state.iterdir()}


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for version in ("1.0", "2.0"):
        units = tmp_path / "opt" / version / "units"
        units.mkdir(parents=True)
        for role in ("agent", "coordinator"):
            (units / f"muster-{role}.service").write_text("[Service]\n")
    (tmp_path / "opt" / "current").symlink_to("1.0")
    for directory in ("units", "bin", "etc", "state/coordinator"):
        (tmp_path / directory).mkdir(parents=True)
    for role in ("agent", "coordinator"):
        (tmp_path / "units" / f"muster-{role}.service").write_text("[Service]\n")
    (tmp_path / "bin" / "systemctl").write_text(SYSTEMCTL.format(root=tmp_path))
    (tmp_path / "bin" / "systemctl").chmod(0o755)
    (tmp_path / "state" / "coordinator" / "coordinator.db").write_text("of 1.0\n")
    return Machine(root=tmp_path)


def test_a_version_that_converts_the_database_and_does_not_start_gives_it_back(machine: Machine) -> None:
    (machine.root / "broken").touch()
    done = machine.upgrade()
    assert done.returncode == 1
    assert machine.version == "1.0"
    assert machine.database == {
        "coordinator.db": "of 1.0\n",
        "coordinator.db.after-2.0": "converted, of 2.0\n",
        "coordinator.db.after-2.0-wal": "not in it yet\n",
    }
    assert "version 2.0 had converted the coordinator's database; version 1.0 gets its copy of" in done.stderr
    assert f"It is kept in {machine.state}/coordinator.db.after-2.0" in done.stderr
    asked = (machine.root / "asked").read_text().splitlines()
    assert asked.index("stop muster-coordinator.service") < len(asked) - 2
    assert asked[-1].startswith("restart ")


def test_it_is_given_back_where_the_agent_beside_the_coordinator_does_not_start(machine: Machine) -> None:
    (machine.root / "broken-agent").touch()
    assert machine.upgrade("agent").returncode == 1
    assert machine.version == "1.0"
    assert machine.database["coordinator.db"] == "of 1.0\n"


def test_a_version_that_converts_nothing_and_does_not_start_leaves_the_database_alone(machine: Machine) -> None:
    (machine.root / "broken-agent").touch()
    (machine.root / "alike").touch()
    (machine.state / "coordinator.db.before-v4").write_text("of long ago\n")
    done = machine.upgrade("agent")
    assert done.returncode == 1
    assert "converted" not in done.stderr
    assert machine.database["coordinator.db"] == "of 1.0\n"
    assert machine.database["coordinator.db.before-v4"] == "of long ago\n"


def test_going_back_over_a_converted_database_is_refused_with_what_it_would_lose(machine: Machine) -> None:
    assert machine.upgrade().returncode == 0
    before = machine.database
    done = machine.go_back()
    assert done.returncode == 1
    assert "version 2.0 has converted the coordinator's database, and version 1.0 cannot read it" in done.stderr
    assert "What was stored since then is lost: jobs, tokens, revocations, secrets" in done.stderr
    assert (machine.version, machine.database) == ("2.0", before)


def test_going_back_with_the_loss_accepted_restores_the_copy_and_keeps_the_newer_database(machine: Machine) -> None:
    assert machine.upgrade().returncode == 0
    (machine.state / "coordinator.db").write_text("weeks of jobs, of 2.0\n")
    done = machine.go_back("restore=1")
    assert (done.returncode, machine.version) == (0, "1.0")
    assert machine.database["coordinator.db"] == "of 1.0\n"
    assert machine.database["coordinator.db.after-2.0"] == "weeks of jobs, of 2.0\n"
    asked = (machine.root / "asked").read_text().splitlines()
    assert asked.index("stop muster-coordinator.service") < len(asked) - asked[::-1].index(
        "restart muster-coordinator.service"
    )

    assert machine.go_back().returncode == 0  # forward again: nothing was converted since
    assert machine.version == "2.0"


def test_a_way_back_that_does_not_end_well_leaves_the_newer_version_with_its_own_database(machine: Machine) -> None:
    assert machine.upgrade().returncode == 0
    (machine.root / "broken-agent").touch()
    before = machine.database
    done = machine.go_back("restore=1")
    assert (done.returncode != 0, machine.version) == (True, "2.0")
    assert {name: text for name, text in machine.database.items() if name != "coordinator.running"} == {
        name: text for name, text in before.items() if name != "coordinator.running"
    }
    assert "the database of version 2.0 is in its place again" in done.stderr


def test_an_upgrade_that_fails_later_does_not_hide_that_the_one_before_it_converted(machine: Machine) -> None:
    assert machine.upgrade().returncode == 0
    third = machine.root / "opt" / "3.0" / "units"
    third.mkdir(parents=True)
    for role in ("agent", "coordinator"):
        (third / f"muster-{role}.service").write_text("[Service]\n")
    (machine.root / "broken-agent").touch()
    assert machine.run("role=agent\nswitch_version 3.0\nrestart_all || refuse_start\n").returncode == 1
    (machine.root / "broken-agent").unlink()
    assert machine.version == "2.0"
    refused = machine.go_back()
    assert refused.returncode == 1
    assert "--restore-database" in refused.stderr


BESIDE = pytest.mark.parametrize("beside", ["relay", "depot"])


def _with(beside: str, machine: Machine, version: str) -> None:
    unit = machine.root / "opt" / version / "units" / f"muster-{beside}.service"
    unit.write_text(f"[Service]\n# {beside}\n")


@BESIDE
def test_what_comes_with_the_coordinator_is_started_after_it(machine: Machine, beside: str) -> None:
    _with(beside, machine, "2.0")
    unit = f"muster-{beside}.service"
    done = machine.run(f"switch_version 2.0\ninstall_units\nrestart_all\nstart_beside {unit}\nswitched_from=")
    assert done.returncode == 0, done.stderr
    assert (machine.root / "units" / unit).read_text() == f"[Service]\n# {beside}\n"
    restarts = [line for line in (machine.root / "asked").read_text().splitlines() if line.startswith("restart")]
    assert restarts.index("restart muster-coordinator.service") < restarts.index(f"restart {unit}")
    assert restarts.count(f"restart {unit}") == 1


@BESIDE
def test_an_agent_brings_none_of_it_along(machine: Machine, beside: str) -> None:
    _with(beside, machine, "2.0")
    unit = f"muster-{beside}.service"
    script = f"role=agent\nswitch_version 2.0\ninstall_units\nstart_beside {unit}\nswitched_from="
    assert machine.run(script).returncode == 0
    assert not (machine.root / "units" / unit).exists()


@BESIDE
def test_a_way_back_to_a_version_without_it_takes_the_unit_away(machine: Machine, beside: str) -> None:
    _with(beside, machine, "2.0")
    assert machine.run("switch_version 2.0\ninstall_units\nswitched_from=").returncode == 0
    assert machine.go_back().returncode == 0
    assert machine.version == "1.0"
    assert machine.run("install_units").returncode == 0
    assert not (machine.root / "units" / f"muster-{beside}.service").exists()


@BESIDE
def test_the_settings_of_what_comes_along_are_made_once_and_left_alone_then(machine: Machine, beside: str) -> None:
    script = "make='chgrp() { :; }'\neval \"$make\"\nconfig=\ninstall_settings"
    machine.run("mkdir -p $ETC\n" + script)
    settings = machine.root / "etc" / f"{beside}.toml"
    assert settings.read_text().startswith(f"# Options of muster-{beside}")
    settings.write_text('log-level = "debug"\n')
    machine.run(script)
    assert settings.read_text() == 'log-level = "debug"\n'
