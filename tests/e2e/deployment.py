"""Muster on a fleet: a coordinator, agents, and the command line that a user types."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.fleet import Fleet, Node
from tests.e2e.programs import Program, environment
from tests.e2e.waiting import until

PORT = 7460

CLI = Path(sys.executable).with_name("muster")

STARTED_WITHIN = 30.0
"""Seconds until a coordinator or an agent must be ready; they take about one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What `muster` said."""

    code: int
    out: str
    err: str


class Deployment:
    """A coordinator at its own address, and the agents that a test starts."""

    def __init__(self, fleet: Fleet, directory: Path) -> None:
        self.fleet = fleet
        self.directory = directory
        self.agents: dict[str, Program] = {}
        self._env = {"MUSTER_COORDINATOR": f"{fleet.coordinator.address}:{PORT}", "MUSTER_INSECURE": "1"}
        ready = directory / "coordinator.ready"
        options = ["--state", str(directory / "coordinator"), "--listen", self._env["MUSTER_COORDINATOR"]]
        command = [sys.executable, "-m", "coordinator", *options, "--insecure", "--ready-file", str(ready)]
        self._coordinator = fleet.coordinator.start(command, log=directory / "coordinator.log")
        _await(self._coordinator, ready)

    def start_agents(self, *nodes: Node) -> None:
        """Agents with the usual settings; returns when the coordinator counts on them."""
        for node in nodes:
            self.start_agent(node)
        self.await_nodes(len(nodes))

    def start_agent(self, node: Node, *options: str, state: Path | None = None, env: Mapping[str, str] = {}) -> Program:
        """An agent; it may not have reached the coordinator yet."""
        ready = self.directory / f"{node.name}.ready"
        command = [
            *(sys.executable, "-m", "agent", "--insecure"),
            *("--coordinator", self._env["MUSTER_COORDINATOR"]),
            *("--name", node.name),
            *("--state", str(state or self.directory / node.name)),
            *("--docker-socket", str(node.engine.socket)),
            *("--mount-root", str(self.directory)),
            *("--ready-file", str(ready)),
            *options,
        ]
        agent = node.start(command, log=self.directory / f"agent-{node.name}.log", env=env)
        self.agents[node.name] = agent
        _await(agent, ready)
        return agent

    def await_nodes(self, count: int) -> list[dict[str, Any]]:
        """The nodes, when so many are ready."""

        def ready() -> list[dict[str, Any]] | None:
            for program in self.agents.values():
                program.check()
            nodes = self.ask("nodes")
            return nodes if [node["state"] for node in nodes] == ["ready"] * count else None

        return until(ready, within=STARTED_WITHIN, what=f"{count} ready nodes")

    def muster(self, *argv: str, within: float = 60.0) -> Answer:
        """Run the command line to its end."""
        command = [str(CLI), *argv]
        env = environment({**self._env, "NO_COLOR": "1"})
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=within, env=env)
        return Answer(code=done.returncode, out=done.stdout, err=done.stderr)

    def ask(self, *argv: str) -> Any:  # noqa: ANN401 - as the command answers
        """What the command line answers with `-o json`."""
        answer = self.muster(*argv, "-o", "json")
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
        self.muster("wait", job, within=within)
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
        until(lambda: self.states(job) == list(expected), within=within, what=f"{job} to be {expected}")

    def log_lines(self, job: str) -> list[dict[str, Any]]:
        """Every piece of output of a job that has ended, or is about to."""
        answer = self.muster("logs", "-f", job, "-o", "json")
        assert answer.code == 0, answer
        return [json.loads(line) for line in answer.out.splitlines()]

    def containers(self) -> list[str]:
        """The names of all containers on all nodes, running or not, as `node/name`."""
        return [
            f"{node.name}{name}"
            for node in self.fleet.nodes
            for container in node.engine.containers()
            for name in container["Names"]
        ]

    def close(self) -> None:
        """End the programs and remove the containers."""
        for program in (*self.agents.values(), self._coordinator):
            program.stop()
        for node in self.fleet.nodes:
            node.engine.remove_containers()

    def report(self) -> str:
        """The ends of all logs, for a failed test."""
        programs = (self._coordinator, *self.agents.values())
        return "\n".join(f"--- {program.log}\n{program.output[-3000:]}" for program in programs)


def _await(program: Program, ready: Path) -> None:
    def look() -> bool:
        program.check()
        return ready.exists()

    until(look, within=STARTED_WITHIN, what=f"{program.name} to be ready")
