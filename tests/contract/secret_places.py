"""Where runtimes work that hand out secrets, and trials of executions that get some."""

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from agent.runtimes.docker.runtime import Confines, DockerRuntime
from agent.secrets.directories import SecretDirectories
from agent.secrets.store import ExecutionSecrets
from muster.domain.fleet.secret import Handover
from muster.domain.jobs.job import Role
from muster.domain.jobs.secret_use import SECRETS_DIRECTORY
from tests.contract.docker_place import DockerPlace
from tests.contract.runtimes import Place, ProcessPlace, Trial, trial
from tests.docker_daemon import request

TOKEN = b"t0ken-of-the-test-Zm9v"
KEY = b"-----BEGIN KEY-----\nbGluZSBvbmUgb2YgaXQ\nbGluZSB0d28gb2YgaXQ\n-----END KEY-----\n"
HANDOVER = Handover(
    env={"TOKEN": TOKEN, "GREETING": "größer  als\n$HOME".encode()},
    files={f"{SECRETS_DIRECTORY}/deploy": {"key": KEY, "tok.en": TOKEN}},
    masked=(TOKEN, KEY),
)


class ProcessesWithSecrets(ProcessPlace):
    directories: SecretDirectories

    def __init__(self, directory: Path, directories: SecretDirectories) -> None:
        super().__init__(directory)
        self.directories = directories


class ContainersWithSecrets(DockerPlace):
    def __init__(self, directory: Path, socket: Path, directories: SecretDirectories) -> None:
        super().__init__(directory, socket)
        self.directories = directories

    @asynccontextmanager
    async def runtime(self, **_: object) -> AsyncIterator[DockerRuntime]:
        runtime = DockerRuntime(self.socket, self.identity, Confines(min_free=0), ExecutionSecrets(self.directories))
        try:
            yield runtime
        finally:
            await runtime.close()


@asynccontextmanager
async def with_secrets(place: Place, directory: Path, role: Role, secrets: Handover = HANDOVER) -> AsyncIterator[Trial]:
    """A prepared execution that is to get secrets; the agent's loop says where they lie and clears them."""
    assert isinstance(place, ProcessesWithSecrets | ContainersWithSecrets)
    async with trial(place, directory, role) as it:
        directories = place.directories
        contained = isinstance(place, ContainersWithSecrets)
        files = SECRETS_DIRECTORY if contained else str(directories.files(it.sandbox.execution))
        it.launch = replace(it.launch, secrets=secrets, env={**it.launch.env, "MUSTER_SECRETS_DIR": files})
        try:
            yield it
        finally:
            await it.sandbox.remove()
            directories.clear(it.sandbox.execution)


def digest(value: bytes) -> bytes:
    """The digest that `sha256sum` prints of its input: what is masked cannot be compared."""
    return hashlib.sha256(value).hexdigest().encode() + b"  -"


def having(directory: Path, values: Sequence[bytes]) -> list[Path]:
    """Files below a directory in which one of the values is."""
    found = []
    for path in directory.rglob("*"):
        try:
            content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        except OSError:
            continue
        if any(value in content for value in values):
            found.append(path)
    return found


def programs_with(what: str, value: bytes) -> set[str]:
    """The names of processes of this machine in which something of /proc has a value."""
    found = set()
    for path in Path("/proc").glob(f"[0-9]*/{what}"):
        try:
            if value in path.read_bytes():
                found.add((path.parent / "comm").read_text().strip())
        except OSError:
            continue
    return found


def root_of(socket: Path) -> Path:
    """Where a Docker daemon keeps what it knows of containers."""
    return Path(json.loads(request(socket, "GET", "/info"))["DockerRootDir"]) / "containers"
