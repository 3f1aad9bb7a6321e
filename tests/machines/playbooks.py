"""Ansible as an operator runs it: from a control node that has the playbooks, an inventory and a key."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.programs import environment
from tests.house.generate_stubs import ROOT
from tests.machines.fleet import ADMINISTRATOR, Machine

PLAYBOOKS = ROOT / "ansible"
PROGRAM = Path(sys.executable).with_name("ansible-playbook")
WITHIN = 600.0
"""Seconds for one run."""

_RECAP = re.compile(r"^(\S+) +: ok=(\d+) +changed=(\d+) +unreachable=(\d+) +failed=(\d+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a run of a playbook came to."""

    output: str
    changed: Mapping[str, int]
    """How many tasks changed something, by host."""
    failed: Mapping[str, int]
    """How many failed, by host; also hosts that were not reached."""

    @property
    def what_changed(self) -> list[str]:
        """Names of the tasks that changed something."""
        name, found = "", []
        for line in self.output.splitlines():
            if match := re.match(r"(?:TASK|RUNNING HANDLER) \[(.*)\]", line):
                name = match[1]
            elif line.startswith("changed:"):
                found.append(name)
        return found


class PlaybookError(AssertionError):
    """A playbook failed; has its output."""

    def __init__(self, playbook: str, run: Run) -> None:
        super().__init__(f"{playbook}:\n{run.output}")
        self.run = run


class Control:
    """The control node: this machine, with a home directory of its own."""

    def __init__(self, directory: Path, groups: Mapping[str, Sequence[Machine]], settings: Mapping[str, Any]) -> None:
        self._directory = directory
        self._inventory = directory / "inventory.yml"
        hosts = {name: {"hosts": {each.name: _host(each) for each in group}} for name, group in groups.items()}
        everywhere = {"ansible_user": ADMINISTRATOR, "ansible_become": True, **settings}
        self._inventory.write_text(json.dumps({"all": {"vars": everywhere, "children": hosts}}))  # JSON is YAML

    def play(self, playbook: str, *options: str, **variables: Any) -> Run:
        """Run one of our playbooks; PlaybookError if a host fails or is not reached."""
        extra = ("--extra-vars", json.dumps(variables))
        done = subprocess.run(
            [str(PROGRAM), "--inventory", str(self._inventory), *extra, *options, str(PLAYBOOKS / playbook)],
            capture_output=True,
            text=True,
            check=False,
            timeout=WITHIN,
            stdin=subprocess.DEVNULL,
            env=environment(
                {
                    "ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg"),
                    "ANSIBLE_HOME": str(self._directory / "ansible"),
                    "ANSIBLE_NOCOLOR": "1",
                    "ANSIBLE_SSH_ARGS": "-o ControlMaster=auto -o ControlPersist=10s",  # outlives a run
                    "HOME": str(self._directory),
                    "LC_ALL": "C.UTF-8",
                }
            ),
        )
        output = done.stdout + done.stderr
        counts = {host: [int(each) for each in rest] for host, *rest in _RECAP.findall(output)}
        run = Run(
            output=output,
            changed={host: changed for host, (_, changed, _, _) in counts.items()},
            failed={host: unreachable + failed for host, (_, _, unreachable, failed) in counts.items()},
        )
        if done.returncode or not counts:
            raise PlaybookError(playbook, run)
        return run


def _host(machine: Machine) -> dict[str, str]:
    return {"ansible_host": machine.address, "ansible_ssh_common_args": " ".join(machine.ssh_options)}
