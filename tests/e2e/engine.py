"""A Docker engine of a node's own: containerd, dockerd, and the few calls that tests make to it."""

import http.client
import io
import json
import signal
import socket
import tarfile
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlencode

from tests.e2e.images import Image
from tests.e2e.programs import Program
from tests.e2e.waiting import until

READY_WITHIN = 60.0
"""Seconds; a daemon takes about one, more when all nodes start on a small disk."""


class Daemon(StrEnum):
    """What an engine consists of, in the order of the start."""

    CONTAINERD = "containerd"
    DOCKERD = "dockerd"


class EngineError(AssertionError):
    """The engine refused a call."""


class _SocketConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Engine:
    """One dockerd, reached through its socket; no client program is needed."""

    def __init__(self, directory: Path, enter: tuple[str, ...], *, bridge: str, env: Mapping[str, str]) -> None:
        self.directory = directory
        self.socket = directory / "docker.sock"
        self._env = env
        self._commands = {
            Daemon.CONTAINERD: (*enter, *_containerd(directory)),
            Daemon.DOCKERD: (*enter, *_dockerd(directory, bridge)),
        }
        self.daemons = {daemon: self._start(daemon) for daemon in Daemon}
        """The programs, for tests that kill them and start them again."""

    def restart(self, daemon: Daemon) -> None:
        """Start a daemon that has ended; containers have gone on (live restore)."""
        self.daemons[daemon] = self._start(daemon)

    def await_ready(self) -> None:
        """Return as soon as it answers."""
        until(self._answers, within=READY_WITHIN, what=f"dockerd at {self.socket}")

    @property
    def pid(self) -> int:
        """The process id of dockerd, which is in the node's network."""
        return self.daemons[Daemon.DOCKERD].pid

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        timeout: float = 60.0,
        **query: str | int,
    ) -> bytes:
        """The body of the engine's answer; EngineError if it refuses."""
        connection = _SocketConnection(self.socket, timeout)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, f"{path}?{urlencode(query)}", content, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if response.status >= http.client.BAD_REQUEST:
            raise EngineError(f"{method} {path}: {response.status} {answer.decode(errors='replace').strip()}")
        return answer

    def load(self, image: Image) -> None:
        """Import an image, like `docker import`."""
        repository, _, tag = image.reference.rpartition(":")
        query = urlencode({"fromSrc": "-", "repo": repository, "tag": tag})
        with image.tar.open("rb") as content:
            self._make(f"/images/create?{query}", content, image.tar.stat().st_size)

    def build(self, directory: Path, name: str) -> None:
        """Build an image, like `docker build -t NAME DIRECTORY`."""
        context = io.BytesIO()
        with tarfile.open(fileobj=context, mode="w") as archive:
            archive.add(directory, ".")
        size = context.tell()
        context.seek(0)
        self._make(f"/build?{urlencode({'t': name})}", context, size)

    def _make(self, call: str, content: IO[bytes], size: int) -> None:
        """Make an image of a tar file."""
        headers = {"Content-Length": str(size), "Content-Type": "application/x-tar"}
        connection = _SocketConnection(self.socket, timeout=300.0)
        try:
            connection.blocksize = 1 << 20
            connection.request("POST", call, content, headers)
            response = connection.getresponse()
            answer = response.read().decode()
        finally:
            connection.close()
        if response.status != http.client.OK or '"error"' in answer:
            raise EngineError(f"{call}: {response.status} {answer.strip()}")

    def tag(self, image: str, other: str) -> None:
        """Give an image one more name."""
        repository, _, tag = other.rpartition(":")
        self.call("POST", f"/images/{image}/tag", repo=repository, tag=tag)

    def info(self) -> dict[str, Any]:
        """What the engine tells of itself."""
        told: dict[str, Any] = json.loads(self.call("GET", "/info"))
        return told

    def containers(self) -> list[dict[str, Any]]:
        """All containers, also those that do not run, as the engine lists them."""
        listed: list[dict[str, Any]] = json.loads(self.call("GET", "/containers/json", all=1))
        return listed

    def inspect(self, container: str) -> dict[str, Any]:
        """What the engine knows about a container."""
        known: dict[str, Any] = json.loads(self.call("GET", f"/containers/{container}/json"))
        return known

    def remove_containers(self) -> None:
        """Kill and remove every container."""
        for container in self.containers():
            self.call("DELETE", f"/containers/{container['Id']}", force=1, v=1)

    def begin_stop(self) -> None:
        """Ask it to end, without waiting; its containers go first, because dockerd waits for them."""
        if self._answers():
            self.remove_containers()
        self.daemons[Daemon.DOCKERD].send(signal.SIGTERM)

    def stop(self) -> None:
        """End it."""
        for daemon in reversed(Daemon):
            self.daemons[daemon].stop()

    def _start(self, daemon: Daemon) -> Program:
        return Program(daemon, self._commands[daemon], log=self.directory / f"{daemon}.log", env=self._env)

    def _answers(self) -> bool:
        for program in self.daemons.values():
            program.check()
        try:
            return self.call("GET", "/_ping", timeout=5.0) == b"OK"
        except (OSError, http.client.HTTPException):
            return False


def _containerd(directory: Path) -> list[str]:
    """A containerd of its own even where the system has one, because containers on host networking live in its
    network.
    """
    config = directory / "containerd.toml"
    config.write_text(
        "version = 2\n"
        f'root = "{directory}/containerd"\n'
        f'state = "{directory}/containerd-run"\n'
        'disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]\n'
        f'[grpc]\naddress = "{directory}/containerd.sock"\n',
    )
    return ["containerd", "--config", str(config), "--log-level", "warn"]


def _dockerd(directory: Path, bridge: str) -> list[str]:
    config = directory / "daemon.json"
    config.write_text('{"live-restore": true}')  # in place of the system's /etc/docker/daemon.json
    return [
        "dockerd",
        *("--config-file", str(config)),
        *("--containerd", f"{directory}/containerd.sock"),
        *("--host", f"unix://{directory}/docker.sock"),
        *("--data-root", f"{directory}/docker"),
        *("--exec-root", f"{directory}/docker-run"),
        *("--pidfile", f"{directory}/docker.pid"),
        *("--bip", bridge),
        *("--exec-opt", "native.cgroupdriver=cgroupfs"),  # systemd may not be there
        *("--log-level", "warn"),
    ]
