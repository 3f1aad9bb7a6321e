"""Somebody with a coordinator, a login there and an SSH key, who makes machines nodes from the command line."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.programs import Program, environment
from tests.e2e.waiting import until
from tests.house.generate_stubs import ROOT
from tests.machines.fleet import Machine, Yard

MUSTER = Path(sys.executable).with_name("muster")
WITHIN = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The answer for programs."""
        return json.loads(self.out)

    def __str__(self) -> str:
        return f"exit code {self.code}\n{self.out}\n{self.err}"


class Administrator:
    """Whoever uses `muster` on the machine that runs the tests."""

    def __init__(self, home: Path, coordinator: str) -> None:
        self.home = home
        self.coordinator = coordinator

    def knows(self, machines: Sequence[Machine]) -> None:
        """Has the machines' key, and has seen theirs before."""
        (self.home / ".ssh").mkdir(mode=0o700, exist_ok=True)
        shutil.copy(machines[0].key, self.home / ".ssh" / "id_ed25519")
        with (self.home / ".ssh" / "known_hosts").open("a") as known:
            known.writelines(machine.known_hosts.read_text() for machine in machines)

    def muster(self, *words: str, stdin: str = "") -> Said:
        """A command, run to its end."""
        done = subprocess.run(
            [MUSTER, *words],
            env=self._environment(),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=WITHIN,
            check=False,
        )
        return Said(code=done.returncode, out=done.stdout, err=done.stderr)

    def interrupted(self, *words: str, at: str) -> Said:
        """A command that gets Ctrl-C as soon as it says `at`."""
        # A test run that a script started in the background ignores SIGINT, and so would what it starts.
        with subprocess.Popen(
            ["env", "--default-signal=INT", MUSTER, *words],
            env=self._environment(),
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            assert process.stderr is not None
            lines: list[str] = []
            for line in process.stderr:
                lines.append(line)
                if at in line:
                    process.send_signal(signal.SIGINT)
                    break
            out, err = process.communicate(timeout=WITHIN)
        return Said(code=process.returncode, out=out, err="".join(lines) + err)

    def _environment(self) -> dict[str, str]:
        return environment(
            {
                "HOME": str(self.home),
                "MUSTER_HOME": str(self.home / "muster"),
                "MUSTER_COORDINATOR": self.coordinator,
                "COLUMNS": "200",
                "PYTHONPATH": str(ROOT),
            }
        )


@contextmanager
def administrator(yard: Yard, home: Path) -> Iterator[Administrator]:
    """Logged in to a coordinator of their own, which ends with the context."""
    home.mkdir()
    state, ready = home / "coordinator", home / "ready"
    command = [sys.executable, "-m", "coordinator", "--state", str(state), "--listen", f"{yard.address}:7460"]
    program = Program("coordinator", [*command, "--ready-file", str(ready)], log=home / "coordinator.log")
    try:
        until(ready.exists, within=WITHIN, what="the coordinator serves")
        somebody = Administrator(home, f"{yard.address}:7460")
        said = (home / "coordinator.log").read_text()
        fingerprint = next(word for word in said.split() if word.startswith("sha256:"))
        login = ("--authority", fingerprint, "--token-file", str(state / "admin-token"))
        done = somebody.muster("login", somebody.coordinator, *login)
        assert done.code == 0, str(done)
        yield somebody
    finally:
        program.stop()
