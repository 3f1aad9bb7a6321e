"""Runs executions as containers of the Docker engine on the agent's node."""

import asyncio
import logging
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from weakref import WeakKeyDictionary

from agent.code.places import code_place, give_code
from agent.code.store import CodeStore
from agent.core.containers.spec import (
    EXECUTION_LABEL,
    HOLDER_PROGRAM,
    IDENTITY_LABEL,
    PART_LABEL,
    ContainerPart,
    ContainerSite,
    Image,
    arguments,
    checked_mount,
    holder_body,
    needs_rehearsal,
    rehearsal_body,
)
from agent.core.launching.handover import RegistryLogin
from agent.core.launching.job_user import JobUser, user_of
from agent.executions.inputs import noted_inputs
from agent.executions.layout import STARTED, ExecutionDirectory
from agent.executions.owner import give
from agent.executions.volumes.node_volumes import NodeVolumes
from agent.logs.spool import LogSpool
from agent.runtimes.docker.answers import About
from agent.runtimes.docker.containers import Containers, as_failures
from agent.runtimes.docker.ends import ContainerEnd
from agent.runtimes.docker.engine.connection import EngineAwayError, EngineError
from agent.runtimes.docker.engine.engine import DockerEngine
from agent.runtimes.docker.first import bring_first
from agent.runtimes.docker.holder import HolderImage, holder_image
from agent.runtimes.docker.images.agreement import ImageBringer, ImageTerms
from agent.runtimes.docker.images.clearing import ImageClearing
from agent.runtimes.docker.images.on_order import pulled_on_order
from agent.runtimes.docker.images.pulled import PulledImages
from agent.runtimes.docker.images.pulling import PullTerms, present, refuse_foreign
from agent.runtimes.docker.programs import ContainerPrograms
from agent.runtimes.docker.sandbox import DockerSandbox, Holder, PreparedContainer
from agent.runtimes.docker.secrets import mask_after_restart
from agent.runtimes.docker.side_work import begun
from agent.runtimes.runtime import Progress, Sandbox
from agent.secrets.store import ExecutionSecrets
from muster.domain.data.kept.pull import PulledHere
from muster.domain.fleet.node import RuntimeOffer
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import PortLease
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import Network, Role, RuntimeKind

log = logging.getLogger(__name__)

MIN_FREE = 1 << 30
"""Bytes; with less than a gigabyte left, a node's disk is full for all that training writes."""

NODES_OWN = (Path("/proc"), Path("/sys"), Path("/dev"))
"""Never mounted: what is below them gives rights over the node."""

_NVIDIA_HOOK = "nvidia-container-runtime-hook"
_HOOK_PATH = "/usr/bin:/usr/local/bin:/usr/sbin:/usr/local/sbin:/usr/local/nvidia/toolkit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Confines:
    """What jobs may have of the node."""

    mount_roots: Sequence[Path] = ()
    """Directories below which jobs may mount."""
    private: Sequence[Path] = ()
    """But nothing that lies in these, or contains one."""
    job_user: JobUser | None = None
    """The user of roles that name none; None: the user that the image names."""
    volumes: NodeVolumes = field(default_factory=NodeVolumes)
    min_free: int = MIN_FREE
    """No execution is prepared where less than so many bytes are left."""


class DockerRuntime:
    """Makes sandboxes that are containers.

    `identity` keeps several agents on one engine apart; `images`: how the node has images.
    """

    kind = RuntimeKind.DOCKER

    def __init__(
        self,
        socket: Path,
        identity: str,
        confines: Confines = Confines(),
        secrets: ExecutionSecrets | None = None,
        code: CodeStore | None = None,
        images: ImageTerms | None = None,
    ) -> None:
        self._socket = socket
        self._identity = identity
        self._confines = confines
        self._secrets = secrets or ExecutionSecrets()
        self._code = code or CodeStore(Path(os.devnull))
        self._engine = DockerEngine(socket)
        images = images or ImageTerms()
        pulled = images.pulled or PulledImages(None)
        self._bringer = ImageBringer(self._engine.images, images, pulled)
        self._programs = ContainerPrograms(self._engine.files)
        self._about: About | None = None
        self._away = False
        """Whether the engine did not answer when it was last looked at."""
        self._sandboxes: WeakKeyDictionary[DockerSandbox, str] = WeakKeyDictionary()
        """Each with the image of its container to come; empty where it was adopted."""
        self.images = ImageClearing(
            self._engine, pulled, self._sandboxes.values, images.keep_free, goes_first=images.goes_first
        )
        """What it has pulled, and how that goes."""

    async def offer(self) -> RuntimeOffer:
        """The engine's version and whether it can hand out GPUs, or why it cannot be used."""
        try:
            about = self._about = await self._engine.about(patience=0)
            self._away = False
        except (EngineAwayError, EngineError) as error:
            self._away = True
            return RuntimeOffer(kind=self.kind, gpus=False, problem=_unreachable(self._socket, error))
        version = f"Podman {about.version}" if about.podman else about.version
        gpus = not about.podman and (about.nvidia or await asyncio.to_thread(_has_hook))
        return RuntimeOffer(kind=self.kind, version=version, gpus=gpus)

    async def prepare(
        self,
        assignment: Assignment,
        directory: ExecutionDirectory,
        spool: LogSpool,
        ports: Sequence[PortLease],
        progress: Progress,
    ) -> DockerSandbox:
        """Check options and disk, fetch the image, try out what Docker checks late, publish ports."""
        containers = Containers(self._engine.containers, self._identity, assignment.execution)
        try:
            with as_failures():
                async with self.images.preparing(assignment.role.image):
                    prepared = await self._prepare(assignment, directory, containers, ports, progress)
        except BaseException:
            with as_failures():
                await containers.remove()
            raise
        return self._sandbox(containers, directory, spool, prepared)

    async def pull_image(self, image: str, login: RegistryLogin | None, progress: Progress) -> PulledHere:
        """Have an image before an execution needs it; raises ExecutionError."""
        with as_failures():
            return await pulled_on_order(self._engine, self._bringer, self.images, image, login, progress)

    async def recover(self, executions: Path) -> Sequence[tuple[Sandbox, LogSpool, bool]]:
        """The user containers of this agent whose directory is still there; all others of this agent are removed.

        While the engine is away those that were started count as running: they go on without it (live restore), and
        their sandboxes wait for it. Nothing is removed then.
        """
        if self._away:
            return [
                self._noted(directory, container)
                for directory, container in await asyncio.to_thread(_started, executions)
            ]
        recovered: list[tuple[Sandbox, LogSpool, bool]] = []
        for execution, parts in (await self._left()).items():
            containers = Containers(self._engine.containers, self._identity, execution)
            directory = ExecutionDirectory(executions, execution)
            if ContainerPart.USER not in parts or not await asyncio.to_thread(directory.path.is_dir):
                log.info("container removed", extra={"execution": execution, "cause": "nothing to go on with"})
                await containers.remove()
                continue
            spool = await asyncio.to_thread(LogSpool, directory.log)
            state = await self._engine.containers.state(parts[ContainerPart.USER])
            sandbox = self._sandbox(containers, directory, spool, None)
            sandbox.mask = await asyncio.to_thread(mask_after_restart, self._secrets.directories, directory)
            sandbox.adopt(state.id, started=state.started, over=state.started and not state.running)
            recovered.append((sandbox, spool, state.started))
        return recovered

    async def close(self) -> None:
        """Stop copying output and let go of the engine; containers go on."""
        for sandbox in tuple(self._sandboxes):
            await sandbox.let_go()
        await self._engine.connection.close()

    def _noted(self, directory: ExecutionDirectory, container: str) -> tuple[Sandbox, LogSpool, bool]:
        """What was started, as far as the execution's directory tells."""
        spool = LogSpool(directory.log)
        containers = Containers(self._engine.containers, self._identity, ExecutionId(directory.path.name))
        sandbox = self._sandbox(containers, directory, spool, None)
        sandbox.mask = mask_after_restart(self._secrets.directories, directory)
        sandbox.adopt(container, started=True)
        return sandbox, spool, True

    def _sandbox(
        self,
        containers: Containers,
        directory: ExecutionDirectory,
        spool: LogSpool,
        prepared: PreparedContainer | None,
    ) -> DockerSandbox:
        end = ContainerEnd(self._engine, directory)
        sandbox = DockerSandbox(self._engine, containers, spool, end, prepared, self._secrets.directories)
        self._sandboxes[sandbox] = "" if prepared is None else prepared.image.id
        return sandbox

    async def _left(self) -> Mapping[ExecutionId, Mapping[str, str]]:
        """Ids of this agent's containers, by execution and part."""
        left: dict[ExecutionId, dict[str, str]] = {}
        for container, labels in await self._engine.containers.find({IDENTITY_LABEL: self._identity}):
            left.setdefault(ExecutionId(labels[EXECUTION_LABEL]), {})[labels[PART_LABEL]] = container
        return left

    async def _prepare(
        self,
        assignment: Assignment,
        directory: ExecutionDirectory,
        containers: Containers,
        ports: Sequence[PortLease],
        progress: Progress,
    ) -> PreparedContainer:
        about = self._about = self._about or await self._engine.about()
        _refuse_gpus_with_podman(assignment, about)
        await self.images.clear(about.root)
        checking = begun(partial(self._checked, assignment.role, directory, about))
        image = await present(self._bringer.images, assignment.role)
        role, noting = await checking
        assert role.image, "the coordinator gives Docker only roles with an image"
        login_for = partial(self._secrets.login, assignment.execution)
        terms = PullTerms(login=login_for, about=about, assignment=assignment)
        image = await self._bringer.brought(assignment, image, terms, progress)
        refuse_foreign(about, role, image)
        user = user_of(role, self._confines.job_user)
        make = partial(self._confines.volumes.make, directory, assignment.project, role.volumes, user)
        volumes = await asyncio.to_thread(make) if role.volumes else {}
        if assignment.interactive is None and not any(arguments(role, image)):
            message = f"image {role.image} names no program, and the job gives no command"
            raise ExecutionError(FailureKind.INVALID_OPTION, message)
        assignment = replace(assignment, role=role)
        site = ContainerSite(
            identity=self._identity,
            cpus=about.cpus,
            init=about.init,
            config=directory.config,
            outputs=directory.outputs,
            status=directory.status,
            inputs=directory.inputs,
            volumes=volumes,
            fetched=await asyncio.to_thread(noted_inputs, directory) if role.inputs else {},
            user=user,
            home=None if user is None or user.uid == 0 else directory.home,
            first=directory.first if noting else None,
            code=None if role.code is None else code_place(role.code, directory.code),
            checkpoint=None if role.checkpoint is None else directory.checkpoint,
        )
        if role.code is not None and role.code.writable:
            directory.code.mkdir(exist_ok=True)  # a rehearsal has it mounted
        if needs_rehearsal(role):
            progress("trying the container's options")
            await self._rehearse(assignment, site, image, containers, about)
        holder = None
        if assignment.network is Network.BRIDGE:
            progress("publishing ports")
            holder = await self._hold(assignment, site, containers, ports, about)
        return PreparedContainer(
            assignment=assignment,
            directory=directory,
            site=site,
            image=image,
            holder=holder,
            architecture=about.architecture,
            programs=self._programs,
            code=self._code,
        )

    def _checked(self, role: Role, directory: ExecutionDirectory, about: About) -> tuple[Role, bool]:
        """The role with its mounts resolved, and whether its exit code can be noted; raises ExecutionError. Makes what
        user code may write to its own.
        """
        roots = [root.resolve() for root in self._confines.mount_roots]
        private = [each.resolve() for each in (*self._confines.private, self._socket, *NODES_OWN)]
        with _existing_sources():
            mounts = tuple(
                checked_mount(mount, _place(Path(mount.source), roots), roots, private) for mount in role.mounts
            )
        for path in (directory.path, about.root):
            _check_free(path, self._confines.min_free)
        directory.config.chmod(0o755)
        directory.home.mkdir(exist_ok=True)
        for path in (directory.outputs, directory.status, directory.home):
            give(path, user_of(role, self._confines.job_user))
        if role.checkpoint is not None:
            give_code(directory.checkpoint, user_of(role, self._confines.job_user))
        return replace(role, mounts=mounts), bring_first(directory, about.architecture)

    async def _rehearse(
        self, assignment: Assignment, site: ContainerSite, image: Image, containers: Containers, about: About
    ) -> None:
        """Start the container without user code, and remove it again."""
        program = _for_this_node(about.architecture)
        container = await containers.create(ContainerPart.REHEARSAL, rehearsal_body(assignment, site, image))
        await self._engine.files.put(container, program.layer)
        await self._engine.containers.start(container)
        await self._engine.containers.remove(container)

    async def _hold(
        self,
        assignment: Assignment,
        site: ContainerSite,
        containers: Containers,
        ports: Sequence[PortLease],
        about: About,
    ) -> Holder:
        """Start the holder, which has the addresses and the published ports from here on."""
        image = _for_this_node(about.architecture)
        if await self._engine.images.find(image.name) is None:
            await self._engine.images.load(image.archive)
        container = await containers.create(ContainerPart.HOLDER, holder_body(assignment, site, image.name, ports))
        await self._engine.containers.start(container)
        state = await self._engine.containers.state(container)
        if not state.running:
            message = f"the container that holds the network ended at once with exit code {state.exit_code}"
            raise ExecutionError(FailureKind.RUNTIME, message)
        return Holder(id=container, address=state.address)


def _started(executions: Path) -> list[tuple[ExecutionDirectory, str]]:
    """Directories of executions whose containers were started, or about to be, and these containers."""
    notes = sorted(executions.glob(f"*/{STARTED}"))
    return [(ExecutionDirectory(executions, ExecutionId(note.parent.name)), note.read_text()) for note in notes]


def _unreachable(socket: Path, error: Exception) -> str:
    if not socket.exists():
        return f"there is no Docker socket {socket}; install Docker, or tell the agent where it is"
    if not os.access(socket, os.R_OK | os.W_OK):
        return f"the agent may not use the Docker socket {socket}; add its user to the group docker"
    return f"Docker does not work: {error}"


def _has_hook() -> bool:
    """Whether NVIDIA's toolkit is installed; the engine does not tell."""
    return shutil.which(_NVIDIA_HOOK, path=f"{os.environ.get('PATH', '')}:{_HOOK_PATH}") is not None


def _refuse_gpus_with_podman(assignment: Assignment, about: About) -> None:
    """Podman would start the container without them and say nothing."""
    if about.podman and assignment.gpus:
        message = f"GPUs cannot be handed out by Podman {about.version} through its Docker interface; use Docker Engine"
        raise ExecutionError(FailureKind.GPU, message)


def _place(source: Path, roots: Sequence[Path]) -> Path:
    """What a mount's source is after symbolic links; raises ExecutionError for a link that a job may have made."""
    for each in (source, *source.parents):
        if each.is_symlink() and any(each.parent.resolve().is_relative_to(root) for root in roots):
            message = f"mounts: {each} is a symbolic link; below a mount root, name the directory itself"
            raise ExecutionError(FailureKind.INVALID_OPTION, message)
    return source.resolve(strict=True)


@contextmanager
def _existing_sources() -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError) as problem:  # RuntimeError: a circle of symbolic links
        place = getattr(problem, "filename", None) or problem
        message = f"mounts: {place} cannot be mounted, it is not there or not readable on the node"
        raise ExecutionError(FailureKind.INVALID_OPTION, message) from problem


def _check_free(directory: Path, least: int) -> None:
    try:
        found = os.statvfs(directory)
    except OSError:
        return  # the engine's directory is not everybody's to see
    free = found.f_bavail * found.f_frsize
    if free < least:
        message = f"the node's disk is full: {free >> 20} MiB are left at {directory}, {least >> 20} are wanted"
        raise ExecutionError(FailureKind.DISK_FULL, message)


def _for_this_node(architecture: str) -> HolderImage:
    """The holder's program and image for the engine's architecture."""
    try:
        return holder_image(architecture, HOLDER_PROGRAM)
    except LookupError as error:
        raise ExecutionError(FailureKind.RUNTIME, str(error)) from error
