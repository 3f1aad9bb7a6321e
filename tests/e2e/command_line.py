"""The command line `muster`, as a user and as a user's scripts see it."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from muster.client.endpoint import login_of
from muster.client.sync.client import SyncClient
from muster.rpc.channel import Credentials
from tests.e2e.programs import environment
from tests.e2e.waiting import until

CLI = Path(sys.executable).with_name("muster")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What `muster` said."""

    code: int
    out: str
    err: str


class CommandLine:
    """Commands to one coordinator, which `env` names."""

    def __init__(self, directory: Path, env: Mapping[str, str]) -> None:
        self.directory = directory
        self.env = dict(env)

    def run(self, *argv: str, within: float = 60.0) -> Answer:
        """Run the command line to its end."""
        command = [str(CLI), *argv]
        env = environment({**self.env, "NO_COLOR": "1"})
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=within, env=env)
        return Answer(code=done.returncode, out=done.stdout, err=done.stderr)

    @property
    def sdk(self) -> SyncClient:
        """The way of programs to the coordinator, for whoever asks again and again: each command starts a program."""
        login = login_of(self.env)
        authority = login.authority.encode() if login.authority is not None else None
        return SyncClient(login.address, Credentials(authority=authority, token=login.token))

    def ask(self, *argv: str) -> Any:
        """What the command line answers with `-o json`."""
        answer = self.run(*argv, "-o", "json")
        assert answer.code == 0, f"muster {' '.join(argv)}: {answer}"
        return json.loads(answer.out)

    def submit(self, job: Mapping[str, Any], *options: str) -> str:
        """The id of a new job; `job` has the keys of a job file."""
        file = self.directory / f"{job['name']}.yaml"
        file.write_text(json.dumps(job))  # JSON is YAML
        return self.submit_file(file, *options)

    def submit_file(self, file: Path, *options: str) -> str:
        """The id of a new job from a job file."""
        job: str = self.ask("submit", str(file), *options)["id"]
        return job

    def ended(self, job: str, within: float = 60.0) -> dict[str, Any]:
        """The job after its end, however it ended."""
        self.run("wait", job, within=within)
        shown: dict[str, Any] = self.ask("show", job)
        return shown

    def states(self, job: str) -> list[str]:
        """The state of every execution of the newest attempt, by rank."""
        return [execution["state"] for execution in self.executions(job)]

    def executions(self, job: str) -> list[dict[str, Any]]:
        """The executions of the newest attempt, by rank."""
        executions: list[dict[str, Any]] = self.ask("show", job)["attempts"][-1]["executions"]
        return executions

    def await_states(self, job: str, expected: Sequence[str], within: float = 30.0) -> None:
        """Return when the executions, by rank, are in these states."""
        with self.sdk as client:

            def reached() -> bool:
                attempts = client.jobs.get(job).attempts
                return [str(each.state) for each in attempts[-1].executions] == list(expected) if attempts else False

            until(reached, within=within, what=f"{job} to be {expected}")

    def log_lines(self, job: str) -> list[dict[str, Any]]:
        """Every piece of output of a job that has ended, or is about to."""
        answer = self.run("logs", "-f", job, "-o", "json")
        assert answer.code == 0, answer
        return [json.loads(line) for line in answer.out.splitlines()]
