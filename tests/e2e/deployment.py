"""Muster on a fleet: a coordinator, agents, and the command line that a user types."""

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from muster.client.client import Client
from muster.client.endpoint import login_of
from muster.domain.fleet.node import NodeState
from muster.rpc.channel import Credentials
from tests.e2e.command_line import CommandLine
from tests.e2e.fleet import Fleet, Node
from tests.e2e.programs import Program
from tests.e2e.waiting import until

PORT = 7460

STARTED_WITHIN = 120.0
"""Seconds until a coordinator or an agent must be ready; they take about one, but not on a machine that is busy."""


class Deployment(CommandLine):
    """A coordinator at its own address, asked through the command line, and the agents that a test starts."""

    def __init__(self, fleet: Fleet, directory: Path) -> None:
        self.address = f"{fleet.coordinator.address}:{PORT}"
        super().__init__(directory, {"MUSTER_COORDINATOR": self.address, "MUSTER_HOME": str(directory / "home")})
        self.fleet = fleet
        self.agents: dict[str, Program] = {}
        self.coordinator: Program
        self._programs: list[Program] = []
        """All that were started, also those whose place another has taken."""
        self._join_token = ""

    def start(self) -> None:
        """Start the coordinator and log in; what a failure leaves running ends with `close`."""
        self.directory.chmod(0o711)  # processes of jobs do not run as the agent's user, and must pass through
        self.start_coordinator()
        fingerprint = re.search("sha256:[0-9a-f]{64}", self.coordinator.output)
        assert fingerprint, "the coordinator does not say how to log in"
        token_file = str(self.directory / "coordinator" / "admin-token")
        answer = self.run("login", self.address, "--authority", fingerprint[0], "--token-file", token_file)
        assert answer.code == 0, answer
        self._join_token = self.run("nodes", "token", "create", "--uses", "100").out.strip()
        assert self.run("projects", "allow", "default", "--host-path", str(self.directory)).code == 0

    @property
    def client(self) -> Client:
        """The SDK's way to the coordinator, as the admin."""
        login = login_of(self.env)
        assert login.authority is not None
        return Client(login.address, Credentials(authority=login.authority.encode(), token=login.token))

    def shared(self, name: str) -> Path:
        """A new directory that jobs may mount and write to, whoever they run as."""
        directory = self.directory / name
        directory.mkdir()
        directory.chmod(0o1777)
        return directory

    def start_coordinator(self) -> None:
        """A coordinator with the state of the one before; returns when it is ready."""
        ready = self.directory / "coordinator.ready"
        ready.unlink(missing_ok=True)
        options = ["--state", str(self.directory / "coordinator"), "--listen", self.env["MUSTER_COORDINATOR"]]
        command = [sys.executable, "-m", "coordinator", *options, "--ready-file", str(ready)]
        self.coordinator = self.fleet.coordinator.start(command, log=self.directory / "coordinator.log")
        self._programs.append(self.coordinator)
        _await(self.coordinator, ready)

    def start_relay(self) -> Program:
        """A relay, which is where the one before was; returns when it serves."""
        return self._start_beside("relay")

    def start_depot(self) -> Program:
        """A depot, which is where the one before was; returns when it serves."""
        return self._start_beside("depot")

    def _start_beside(self, name: str) -> Program:
        """A program of the coordinator's machine."""
        ready = self.directory / f"{name}.ready"
        ready.unlink(missing_ok=True)
        options = ["--state", str(self.directory / "coordinator"), "--ready-file", str(ready)]
        command = [sys.executable, "-m", f"coordinator.{name}", *options]
        program = self.fleet.coordinator.start(command, log=self.directory / f"{name}.log")
        self._programs.append(program)
        _await(program, ready)
        return program

    def start_agents(self, *nodes: Node) -> None:
        """Agents with the usual settings; returns when the coordinator counts on them."""
        for node in nodes:
            self.start_agent(node)
        self.await_nodes(len(nodes))

    def start_agent(self, node: Node, *options: str, state: Path | None = None, env: Mapping[str, str] = {}) -> Program:
        """An agent that has just been started."""
        command = [
            *(sys.executable, "-m", "agent"),
            *("--coordinator", self.env["MUSTER_COORDINATOR"]),
            *("--name", node.name),
            *("--state", str(state or self.directory / node.name)),
            *("--docker-socket", str(node.engine.socket)),
            *("--mount-root", str(self.directory)),
            *options,
        ]
        agent = node.start(
            command,
            log=self.directory / f"agent-{node.name}.log",
            env={**node.env, "MUSTER_JOIN_TOKEN": self._join_token, **env},
        )
        self._programs.append(agent)
        self.agents[node.name] = agent
        return agent

    def await_nodes(self, count: int) -> list[dict[str, Any]]:
        """The nodes, when so many are ready."""

        with self.sdk as client:

            def ready() -> bool:
                for program in self.agents.values():
                    program.check()
                return [node.state for node in client.nodes.list()] == [NodeState.READY] * count

            until(ready, within=STARTED_WITHIN, what=f"{count} ready nodes")
        nodes: list[dict[str, Any]] = self.ask("nodes")
        return nodes

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
        for program in reversed(self._programs):
            program.stop()
        for node in self.fleet.nodes:
            node.engine.remove_containers()

    def report(self) -> str:
        """The ends of all logs, for a failed test."""
        logs = {program.log: program.output for program in self._programs}
        return "\n".join(f"--- {log}\n{output[-3000:]}" for log, output in logs.items())


@contextmanager
def deployed(fleet: Fleet, directory: Path) -> Iterator[Deployment]:
    """A deployment with a coordinator; all its programs have ended afterwards, also when its start failed."""
    deployment = Deployment(fleet, directory)
    try:
        deployment.start()
        yield deployment
    finally:
        deployment.close()


def _await(program: Program, ready: Path) -> None:
    def look() -> bool:
        program.check()
        return ready.exists()

    until(look, within=STARTED_WITHIN, what=f"{program.name} to be ready")
