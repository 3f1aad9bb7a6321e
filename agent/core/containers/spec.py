"""What Docker is asked to create for an execution: the bodies of create requests, decided here and sent elsewhere."""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath
from typing import TypeAlias, cast

from agent.core.containers.inputs import input_mounts
from agent.core.launching.dialects.valohai import CONTAINER_DIRECTORIES
from agent.core.launching.job_user import USER_NAME, JobUser, numeric
from agent.core.launching.launch import (
    CONTAINER_CONFIG,
    CONTAINER_FIRST,
    CONTAINER_HOME,
    CONTAINER_OUTPUTS,
    CONTAINER_STATUS,
)
from muster.domain.data.code import CODE_DIRECTORY
from muster.domain.gangs.plan import LAUNCH_PROGRAMS, Assignment, Launch
from muster.domain.gangs.roster import Json, PortLease
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.job import DEFAULT_PIDS, InlineFile, Mount, Network, Role
from muster.domain.quantity import MILLIS_PER_CPU

EXECUTION_LABEL = "muster.execution"
IDENTITY_LABEL = "muster.agent"
PART_LABEL = "muster.part"

HOLDER_PROGRAM = "/muster-holder"

Body: TypeAlias = dict[str, Json]

# What programs count on that run as root of a container: package managers, servers that become another user, writing
# to other people's files. Docker's default set less what only an attacker has a use for: raw packets (spoofing on the
# node's network), device nodes, forged audit records, another root directory, handing capabilities on to files.
_OF_ROOT = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID")

# Output is read from these files again after a restart of the agent. `local` keeps every byte as it was printed, where
# `json-file` replaces what is not UTF-8. Files are large because rotation under a reader loses lines on old engines.
_LOG_CONFIG: Body = {"Type": "local", "Config": {"max-size": "100m", "max-file": "3", "compress": "false"}}

# Docker's own, for images that set none.
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

LEAST_SHARES, MOST_SHARES, DOCKERS_SHARES_OF_A_CPU = 2, 262_144, 1024
"""How Docker and Linux count what a container weighs where CPUs are short."""

_RESERVED_TARGETS = ("/muster", "/proc", "/sys", "/dev")


class ContainerPart(StrEnum):
    """What a container is for."""

    USER = "user"  #: runs user code
    HOLDER = "holder"  #: owns the network of a user container from check-in on
    REHEARSAL = "rehearsal"  #: started once without user code, to see whether it could be started


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What an image says about how it is run."""

    id: str
    bytes: int = 0
    """How much it is by the engine's word; 0: that is not known."""
    known_as: tuple[str, ...] = ()
    """The names with digests under which registries have it, as far as the engine knows."""
    architecture: str = ""
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSite:
    """The facts of the node and of the execution's directories on which a container depends."""

    identity: str
    """The agent's identity; other agents of the same daemon leave its containers alone."""
    cpus: int
    """Docker refuses a limit above this."""
    init: bool
    """Whether docker-init is installed: it passes signals on and reaps orphans, which few programs do as process 1.
    It is used where nothing of ours does so.
    """
    config: PurePath
    outputs: PurePath
    status: PurePath
    inputs: PurePath
    volumes: Mapping[str, PurePath] = field(default_factory=dict)
    """The directory of each volume that does not lie in memory, by its name."""
    fetched: Mapping[str, PurePath] = field(default_factory=dict)
    """The directory of each input, by its name."""
    user: JobUser | None = None
    """The user of user code; None: the user that the role or the image names, which may be root."""
    home: PurePath | None = None
    """The home directory of that user."""
    code: PurePath | None = None
    """The copy of the code that the job brings along; None: it brings none."""
    checkpoint: PurePath | None = None
    """The directory in which user code saves for the next attempt; None: its job stores nothing of that."""
    first: PurePath | None = None
    """The directory with the program in front of user code, which does what docker-init does; None: there is none."""


def container_name(execution: ExecutionId, part: ContainerPart) -> str:
    """Unique on a daemon; people find an execution by it in `docker ps`."""
    return f"muster-{execution}" if part is ContainerPart.USER else f"muster-{execution}-{part}"


def user_body(
    assignment: Assignment,
    site: ContainerSite,
    image: Image,
    launch: Launch,
    *,
    holder: str | None,
    hosts: PurePath | None,
) -> Body:
    """The container that runs user code: on the node's network, or in that of its holder with `hosts` as /etc/hosts."""
    role = assignment.role
    config: Body = {
        "Image": image.id,
        "Env": _environment(assignment, site, image, launch),
        "Labels": _labels(assignment, site, ContainerPart.USER),
        "StopTimeout": max(1, int(assignment.grace.total_seconds())),
        "Healthcheck": {"Test": ["NONE"]},  # nobody looks at it, and it would run beside user code
        "HostConfig": _host_config(assignment, site, launch, holder, hosts),
    }
    if role.entrypoint is not None:
        config["Entrypoint"] = list(role.entrypoint) or [""]  # Docker's way to say: none
    if role.command:
        config["Cmd"] = list(role.command)
    if site.user is not None:
        config["User"] = str(site.user)
    elif role.user is not None:
        config["User"] = role.user
    if role.workdir is not None:
        config["WorkingDir"] = role.workdir
    return config


def rehearsal_body(assignment: Assignment, site: ContainerSite, image: Image) -> Body:
    """The container that will run user code, except that it runs the holder program and sees no other member."""
    body = user_body(assignment, site, image, Launch(env={}), holder=None, hosts=None)
    return {
        **body,
        "Entrypoint": [HOLDER_PROGRAM],
        "Cmd": [],
        "Labels": _labels(assignment, site, ContainerPart.REHEARSAL),
    }


def needs_rehearsal(role: Role) -> bool:
    """Whether the role asks for what Docker checks at the start of a container only, which is too late for a gang."""
    named_user = role.user is not None and numeric(role.user) is None
    more_rights = role.security.privileged or role.security.capabilities
    return bool(role.resources.gpus or role.ulimits or named_user or more_rights)


def holder_body(assignment: Assignment, site: ContainerSite, image: str, ports: Sequence[PortLease]) -> Body:
    """The container that owns the network: addresses, published ports and host name."""
    bindings: Body = {}
    for lease in ports:
        bindings[f"{lease.container_port}/tcp"] = [{"HostIp": "0.0.0.0", "HostPort": str(lease.host_port)}]  # noqa: S104 - a published port is for other machines
    return {
        "Image": image,
        "Hostname": hostname(assignment),
        "User": "65534:65534",
        "Labels": _labels(assignment, site, ContainerPart.HOLDER),
        "ExposedPorts": {port: {} for port in bindings},
        "HostConfig": {
            "NetworkMode": "bridge",
            "PortBindings": bindings,
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges"],
            "IpcMode": "private",
            "PidsLimit": 64,  # it is one process, but the program that starts it has threads, and they count
            "LogConfig": {"Type": "none"},
            "RestartPolicy": {"Name": "no"},
        },
    }


def hostname(assignment: Assignment) -> str:
    """The host name on bridge networking; never the name of a member in the roster, which stands for its address on
    the node.
    """
    return f"rank-{assignment.rank}"


def hosts_file(assignment: Assignment, launch: Launch, address: str) -> bytes:
    """/etc/hosts of a container on bridge networking; `address` is its own on the bridge."""
    lines = ["127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost ip6-loopback"]
    lines += [f"{peer}\t{name}" for name, peer in launch.host_names.items()]
    lines += [f"{address}\t{hostname(assignment)}"]
    return ("\n".join(lines) + "\n").encode()


def arguments(role: Role, image: Image) -> tuple[str, ...]:
    """The program and its arguments, by Docker's rules for what a job and an image say."""
    if role.entrypoint is not None:
        return role.entrypoint + role.command
    return image.entrypoint + (role.command or image.command)


def candidates(program: str, workdir: str, path: str) -> tuple[str, ...]:
    """Where in a container a program may be, in the order in which it is looked for."""
    if "/" in program:
        return (posixpath.normpath(posixpath.join(workdir, program)),)
    return tuple(posixpath.normpath(posixpath.join(workdir, directory, program)) for directory in path.split(":"))


def search_path(image: Image, launch: Launch) -> str:
    """PATH as user code will have it."""
    path = launch.env.get("PATH") or image.env.get("PATH") or _DEFAULT_PATH
    return f"{CONTAINER_CONFIG}/{LAUNCH_PROGRAMS}:{path}" if launch.programs else path


def workdir(role: Role, image: Image) -> str:
    """The working directory of user code."""
    return posixpath.join("/", role.workdir or image.workdir or "/")


def mount_targets(body: Body) -> tuple[str, ...]:
    """Where the container of a request has something mounted."""
    config = cast("Body", body["HostConfig"])
    in_memory = cast("Body", config.get("Tmpfs", {}))
    return (*(str(mount["Target"]) for mount in cast("list[Body]", config["Mounts"])), *in_memory)


def inline_paths(role: Role, image: Image) -> Mapping[str, InlineFile]:
    """The role's inline files by their absolute paths in the container."""
    directory = workdir(role, image)
    return {posixpath.normpath(posixpath.join(directory, file.path)): file for file in role.files}


def checked_mount(mount: Mount, source: PurePath, roots: Sequence[PurePath], private: Sequence[PurePath] = ()) -> Mount:
    """The mount with its source resolved; raises ExecutionError for one that the node's operator does not allow.

    Nothing that lies in a `private` directory, or that contains one, is mounted.
    """
    target = posixpath.normpath(mount.target).replace("//", "/")  # normpath leaves two slashes in front
    if not target.startswith("/") or target == "/":
        raise ExecutionError(
            FailureKind.INVALID_OPTION, f"mounts: the target {mount.target} is no absolute path below /"
        )
    if any(PurePath(target).is_relative_to(reserved) for reserved in _RESERVED_TARGETS):
        raise ExecutionError(FailureKind.INVALID_OPTION, f"mounts: the target {target} is not free for mounts")
    if not any(source.is_relative_to(root) for root in roots):
        allowed = ", ".join(map(str, roots)) or "none"
        raise ExecutionError(
            FailureKind.INVALID_OPTION,
            f"mounts: {mount.source} does not lie below a directory that this node lets jobs mount "
            f"(the agent's mount_roots: {allowed})",
        )
    if any(source.is_relative_to(each) or each.is_relative_to(source) for each in private):
        message = f"mounts: {mount.source} holds what only the agent, the engine or the node itself may see"
        raise ExecutionError(FailureKind.INVALID_OPTION, message)
    return Mount(source=str(source), target=target, read_only=mount.read_only)


def _labels(assignment: Assignment, site: ContainerSite, part: ContainerPart) -> Body:
    return {
        EXECUTION_LABEL: assignment.execution,
        "muster.job": assignment.job,
        "muster.attempt": str(assignment.attempt),
        "muster.rank": str(assignment.rank),
        "muster.image": assignment.role.image or "",
        IDENTITY_LABEL: site.identity,
        PART_LABEL: part,
    }


def _environment(assignment: Assignment, site: ContainerSite, image: Image, launch: Launch) -> list[Json]:
    """The variables beside those of the image, which count more than defaults.

    Ours come last: a job cannot take GPUs that were not given to it, whatever it or its image sets.
    """
    visible = ",".join(assignment.gpus) or "void"
    own = {} if site.home is None else {"HOME": CONTAINER_HOME, "USER": USER_NAME, "LOGNAME": USER_NAME}
    defaults = {name: value for name, value in launch.defaults.items() if name not in image.env}
    path = {"PATH": search_path(image, launch)} if launch.programs else {}
    env = {**own, **defaults, **launch.env, **path, "NVIDIA_VISIBLE_DEVICES": visible}
    return [f"{name}={value}" for name, value in env.items()]


def _host_config(
    assignment: Assignment, site: ContainerSite, launch: Launch, holder: str | None, hosts: PurePath | None
) -> Body:
    resources = assignment.role.resources
    config: Body = {
        **_rights(assignment.role, site),
        "Init": site.init and site.first is None,
        "LogConfig": _LOG_CONFIG,
        "RestartPolicy": {"Name": "no"},
        "CpuShares": min(
            max(LEAST_SHARES, resources.cpu_millis * DOCKERS_SHARES_OF_A_CPU // MILLIS_PER_CPU), MOST_SHARES
        ),
        "Mounts": _mounts(assignment, site, hosts),
        "Ulimits": [{"Name": each.name, "Soft": each.soft, "Hard": each.hard} for each in assignment.role.ulimits],
    }
    if holder is None:
        config["NetworkMode"] = Network.HOST.value
        config["ExtraHosts"] = [f"{name}:{address}" for name, address in launch.host_names.items()]
    else:
        config["NetworkMode"] = f"container:{holder}"
    if resources.cpu_limit is not None:
        config["NanoCpus"] = min(resources.cpu_limit * 1_000_000, site.cpus * 1_000_000_000)
    if resources.most_memory is not None:
        config["Memory"] = config["MemorySwap"] = resources.most_memory  # equal: no swap on top
    in_memory: Body = {each.target: _tmpfs(each.tmpfs, site) for each in assignment.role.volumes if each.tmpfs}
    if in_memory:
        config["Tmpfs"] = in_memory
    if resources.shm is not None:
        config["ShmSize"] = resources.shm
    if assignment.gpus:
        config["DeviceRequests"] = [
            {"Driver": "nvidia", "DeviceIDs": list(assignment.gpus), "Capabilities": [["gpu", "utility", "compute"]]}
        ]
    return config


def _tmpfs(size: int, site: ContainerSite) -> str:
    """Options of a directory in memory: its user's alone, or anybody's where only the image knows the user."""
    options = f"rw,exec,nosuid,nodev,size={size}"
    user = site.user
    return f"{options},mode=1777" if user is None else f"{options},mode=0700,uid={user.uid},gid={user.gid}"


def _rights(role: Role, site: ContainerSite) -> Body:
    """What user code may do; nothing that a plain user may not, unless its project was opened for more.

    Docker's profile for system calls, and what it hides of /proc and /sys, stay as they are for all but the privileged.
    """
    asked = role.security
    may_be_root = site.user is None or site.user.uid == 0
    rights: Body = {
        "CapDrop": ["ALL"],
        "CapAdd": sorted({*(_OF_ROOT if may_be_root else ()), *asked.capabilities}),
        "SecurityOpt": [] if asked.gain_privileges else ["no-new-privileges"],
        "PidsLimit": asked.pids or DEFAULT_PIDS,
        # Named, as an engine may be told to share both with others by default.
        "IpcMode": "private",
        "CgroupnsMode": "private",
    }
    return {**rights, "Privileged": True} if asked.privileged else rights


def _mounts(assignment: Assignment, site: ContainerSite, hosts: PurePath | None) -> list[Json]:
    mounts = [
        Mount(source=str(site.config), target=CONTAINER_CONFIG),
        Mount(source=str(site.outputs), target=CONTAINER_OUTPUTS, read_only=False),
        Mount(source=str(site.status), target=CONTAINER_STATUS, read_only=False),
        *assignment.role.mounts,
        *(
            Mount(source=str(site.volumes[volume.name]), target=volume.target, read_only=not volume.writable)
            for volume in assignment.role.volumes
            if volume.name in site.volumes
        ),
        *(_valohai_mounts(assignment.role, site) if Dialect.VALOHAI in assignment.dialects else ()),
        *input_mounts(assignment.role, site.fetched, valohai=Dialect.VALOHAI in assignment.dialects),
    ]
    if site.home is not None:
        mounts.append(Mount(source=str(site.home), target=CONTAINER_HOME, read_only=False))
    if site.code is not None:
        shared = assignment.role.code is not None and not assignment.role.code.writable
        mounts.append(Mount(source=str(site.code), target=CODE_DIRECTORY, read_only=shared))
    if site.checkpoint is not None and assignment.role.checkpoint is not None:
        target = assignment.role.checkpoint.target
        mounts.append(Mount(source=str(site.checkpoint), target=target, read_only=False))
    if site.first is not None:
        mounts.append(Mount(source=str(site.first), target=CONTAINER_FIRST, read_only=False))
    if hosts is not None:
        mounts.append(Mount(source=str(hosts), target="/etc/hosts"))
    return [
        {"Type": "bind", "Source": mount.source, "Target": mount.target, "ReadOnly": mount.read_only}
        for mount in mounts
    ]


def _valohai_mounts(role: Role, site: ContainerSite) -> Iterator[Mount]:
    """The directories of the container under Valohai's names. The one of inputs takes mounts of the job, so it can be
    written to, and gives way to a mount of the job in its place.
    """
    taken = {mount.target.rstrip("/") for mount in role.mounts}
    sources = {"config": site.config, "inputs": site.inputs, "outputs": site.outputs}
    for name, target in CONTAINER_DIRECTORIES.items():
        if target not in taken:
            yield Mount(source=str(sources[name]), target=target, read_only=name == "config")
