"""Brings the secrets of an execution into its container, past everything that Docker keeps or shows."""

import asyncio
import io
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from agent.core.containers.secrets import ENV_DIRECTORY, ENV_PROGRAM, uid_of, with_files, with_variables
from agent.core.containers.spec import Body
from agent.executions.layout import ExecutionDirectory
from agent.logs.mask import MASK_EVERYTHING, MASK_NOTHING, Mask
from agent.runtimes.docker.engine.engine import DockerEngine
from agent.secrets.directories import VARIABLES, SecretDirectories
from muster.domain.fleet.secret import Handover
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind

MASKED = "masked"
"""File in the directory of an execution that got secrets: without knowing them nothing that it printed may be shown."""

_LONGEST_PASSWD = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSecrets:
    """Secrets of one execution that has some."""

    execution: ExecutionId
    directories: SecretDirectories
    handover: Handover

    async def offered(
        self, body: Body, directory: ExecutionDirectory, arguments: Sequence[str], paths: Sequence[str]
    ) -> Body:
        """The request for a container that finds them, as soon as they are `provided`."""
        await asyncio.to_thread(self._make, directory)
        directories = self.directories.mounts(self.execution, self.handover)
        if not self.handover.env:
            return with_files(body, directories)
        env = {ENV_DIRECTORY: self.directories.env(self.execution)}
        return with_variables(with_files(body, {**directories, **env}), VARIABLES, arguments, paths)

    async def provided(self, engine: DockerEngine, container: str, architecture: str) -> None:
        """Give them to the user of a container that was not started yet."""
        if self.handover.env:
            await engine.files.put(container, _packed(_program(architecture)))
        user = (await engine.containers.state(container)).user
        passwd = b""
        if user and not user.partition(":")[0].isdecimal():
            passwd = await engine.files.beginning(container, "/etc/passwd", _LONGEST_PASSWD)
        await asyncio.to_thread(self.directories.fill, self.execution, self.handover, uid_of(user, passwd))

    def _make(self, directory: ExecutionDirectory) -> None:
        (directory.path / MASKED).touch()
        self.directories.make(self.execution, self.handover)


def mask_after_restart(directories: SecretDirectories, directory: ExecutionDirectory) -> Mask:
    """What is taken out of the log of an execution that an earlier agent started."""
    mask = directories.mask(ExecutionId(directory.path.name))
    if mask is not None:
        return mask
    return MASK_EVERYTHING if (directory.path / MASKED).exists() else MASK_NOTHING


def _program(architecture: str) -> bytes:
    """The program for a processor, named as the kernel names it; its source lies beside it."""
    file = files("agent.runtimes.docker") / "secret_env_program" / f"secret-env-{architecture}"
    try:
        return file.read_bytes()
    except FileNotFoundError:
        message = f"secrets cannot be variables on {architecture}; let them be files"
        raise ExecutionError(FailureKind.INVALID_OPTION, message) from None


def _packed(program: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        entry = tarfile.TarInfo(ENV_PROGRAM.lstrip("/"))
        entry.size, entry.mode = len(program), 0o555
        archive.addfile(entry, io.BytesIO(program))
    return buffer.getvalue()
