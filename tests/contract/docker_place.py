"""Where the Docker runtime works in tests: a real engine, and executions in the test's own directory."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from agent.code.store import CodeStore
from agent.core.containers.spec import EXECUTION_LABEL
from agent.core.launching.job_user import NOBODY, JobUser
from agent.core.launching.launch import CONTAINER_CONFIG, CONTAINER_STATUS
from agent.executions.layout import ExecutionDirectory
from agent.runtimes.docker.runtime import Confines, DockerRuntime
from muster.domain.ids import ExecutionId
from tests.docker_daemon import IMAGE, containers


class DockerPlace:
    """Containers."""

    image = IMAGE
    added_env = frozenset({"PATH", "HOME", "HOSTNAME", "LOGNAME", "USER", "NVIDIA_VISIBLE_DEVICES"})

    def __init__(self, directory: Path, socket: Path) -> None:
        self.socket = socket
        self.identity = f"test-{directory.name}"

    @asynccontextmanager
    async def runtime(
        self,
        *,
        mount_roots: Sequence[Path] = (),
        private: Sequence[Path] = (),
        job_user: JobUser | None = NOBODY,
        min_free: int = 0,
        code: CodeStore | None = None,
    ) -> AsyncIterator[DockerRuntime]:
        confines = Confines(mount_roots=mount_roots, private=private, job_user=job_user, min_free=min_free)
        runtime = DockerRuntime(self.socket, self.identity, confines, code=code)
        try:
            yield runtime
        finally:
            await runtime.close()

    def config_directory(self, directory: ExecutionDirectory) -> str:
        del directory  # it is mounted at the same place in every container
        return CONTAINER_CONFIG

    def status_directory(self, directory: ExecutionDirectory) -> str:
        del directory  # as above
        return CONTAINER_STATUS

    async def left(self, execution: ExecutionId) -> Sequence[str]:
        return [str(each["Names"]) for each in containers(self.socket, f"{EXECUTION_LABEL}={execution}")]
