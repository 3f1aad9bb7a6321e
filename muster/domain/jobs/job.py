"""What a user asks for: a job with its roles, as values that are already checked."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from muster.domain.data.checkpoint import JobCheckpoint
from muster.domain.data.code import JobCode
from muster.domain.data.job_input import JobInput
from muster.domain.data.output_terms import ALL_OUTPUTS, OutputTerms
from muster.domain.data.volume import Volume
from muster.domain.ids import NodeId
from muster.domain.jobs.disconnect import DEFAULT_LOST_AFTER, OnDisconnect
from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.frameworks.framework import Framework
from muster.domain.jobs.interactive import NEVER_IDLE, Interactive, MainProgramStreams
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import SuccessRule
from muster.domain.jobs.placing.affinity import NO_AFFINITY, Affinity
from muster.domain.jobs.placing.pool_choice import PoolChoice
from muster.domain.jobs.placing.portion import WHOLE_GPU, Portion
from muster.domain.jobs.placing.toleration import Toleration
from muster.domain.jobs.placing.topology import ANYWHERE, Topology
from muster.domain.jobs.restart import NO_EXIT_RULES, ExitRules, RestartPolicy
from muster.domain.jobs.secret_use import SecretUse
from muster.domain.jobs.stopping.preemption import DEFAULT_ON_PREEMPT, OnPreempt

DEFAULT_PROJECT = "default"
"""Where jobs go that name no project."""
LOCAL_OWNER = "local"
"""The owner of jobs of a fleet without accounts, as `muster up` runs one."""
CAPABILITIES = frozenset(
    {
        *("AUDIT_CONTROL", "AUDIT_READ", "AUDIT_WRITE", "BLOCK_SUSPEND", "BPF", "CHECKPOINT_RESTORE", "CHOWN"),
        *("DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "IPC_LOCK", "IPC_OWNER", "KILL", "LEASE"),
        *("LINUX_IMMUTABLE", "MAC_ADMIN", "MAC_OVERRIDE", "MKNOD", "NET_ADMIN", "NET_BIND_SERVICE", "NET_BROADCAST"),
        *("NET_RAW", "PERFMON", "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYSLOG", "SYS_ADMIN", "SYS_BOOT"),
        *("SYS_CHROOT", "SYS_MODULE", "SYS_NICE", "SYS_PACCT", "SYS_PTRACE", "SYS_RAWIO", "SYS_RESOURCE"),
        *("SYS_TIME", "SYS_TTY_CONFIG", "WAKE_ALARM"),
    },
)
"""All that Linux has, without `CAP_` before them."""
DEFAULT_PIDS = 32_768
"""Processes and threads of a container: a fork bomb ends at this, eight data-loading ranks stay far below."""
NODE_LABEL = r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,126}[A-Za-z0-9])?"
"""The pattern of names of labels of nodes."""
MOST_PIDS = 4_194_304
"""The number of processes that Linux can number."""


class Network(StrEnum):
    """How the containers of a job reach each other."""

    HOST = "host"  #: the node's own network; ports are leased and held by the agent
    BRIDGE = "bridge"  #: a private network per container; declared ports are published on the node


class Packing(StrEnum):
    """Which nodes are filled first."""

    PACK = "pack"  #: as few nodes as possible, so that whole nodes stay free for large jobs
    SPREAD = "spread"  #: as many nodes as possible


class PullPolicy(StrEnum):
    """When the image is pulled."""

    ALWAYS = "always"
    MISSING = "missing"
    NEVER = "never"


class RuntimeKind(StrEnum):
    """What runs an execution on its node."""

    DOCKER = "docker"  #: a container; needs `image`
    PROCESS = "process"  #: a plain process; for jobs without `image`


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What one execution needs."""

    gpus: int = 0
    gpu_model: str | None = None
    """Case-insensitive part of the model name that every GPU must have (`H100`)."""
    mig: str | None = None
    """The profile of the MIG devices that it gets in place of whole GPUs (`1g.10gb`); `gpus` is how many."""
    gpu_portion: int | None = None
    """Thousandths that it gets of each of its GPUs in place of the whole; `gpus` is how many."""
    gpu_memory: int | None = None
    """Bytes of memory that it gets of each of its GPUs in place of the whole; `gpus` is how many."""
    gpu_counted: int | None = field(default=None, compare=False)
    """Thousandths of a GPU as which `gpu_memory` counts in quotas; settled at the submit. None: a whole one."""
    cpu_millis: int = 1000
    """Thousandths of a CPU."""
    memory: int | None = None
    """Bytes that are reserved on the node; None reserves nothing."""
    disk: int | None = None
    """Bytes that must be free on the disk of the node's agent; None: it does not matter."""
    shm: int | None = None
    """Bytes of /dev/shm in a container; None is the runtime's default."""
    cpu_limit: int | None = None
    """Thousandths of a CPU that it gets at most; None: as many as nobody else uses."""
    memory_limit: int | None = None
    """Bytes that it may use at most; 0: as many as there are; None: what is reserved, if that is said."""

    @property
    def portion(self) -> Portion | None:
        """What it asks of each of its GPUs; None: whole ones, or MIG devices."""
        if self.gpu_memory is not None:
            return Portion(self.gpu_counted or WHOLE_GPU, self.gpu_memory)
        part = self.gpu_portion
        return None if part is None or part == WHOLE_GPU else Portion(part)

    @property
    def most_memory(self) -> int | None:
        """Bytes that it may use at most; None: there is no limit."""
        return self.memory if self.memory_limit is None else self.memory_limit or None


@dataclass(frozen=True, slots=True, kw_only=True)
class PortRequest:
    """A named port that is leased for each execution of a role."""

    name: str
    port: int | None = None
    """Fixed number: on host networking the node's port, on bridge networking the container's.

    None: the agent chooses one from its range.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A directory or file of the node, seen in the container."""

    source: str
    target: str
    read_only: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Ulimit:
    """A resource limit of a container (`memlock`, `nofile`, …); -1 is unlimited."""

    name: str
    soft: int
    hard: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineFile:
    """A small file that is written before user code starts."""

    path: str
    """Absolute, or relative to the working directory."""
    content: bytes
    executable: bool = False

    @property
    def is_text(self) -> bool:
        """Whether it is UTF-8."""
        try:
            self.content.decode()
        except UnicodeDecodeError:
            return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """What the containers of a role may do beyond the default; the job's project must be opened for it."""

    capabilities: tuple[str, ...] = ()
    """Beside the default ones, like `IPC_LOCK`."""
    privileged: bool = False
    """Everything that the node's root may."""
    gain_privileges: bool = False
    """Whether programs may gain privileges (setuid)."""
    image_user: bool = False
    """Run as the user that the image names, root as a rule, where the role names none; False: as a numeric user of
    the agent.
    """
    pids: int | None = None
    """Most processes and threads; None: the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A named part of a job: `count` identical executions."""

    name: str = "worker"
    count: int = 1
    image: str | None = None
    pull: PullPolicy = PullPolicy.MISSING
    entrypoint: tuple[str, ...] | None = None
    """Replaces the image's entrypoint; None keeps it."""
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    workdir: str | None = None
    user: str | None = None
    """`uid[:gid]`, or a name known in the image; None: the node's user for jobs, see `Security.image_user`."""
    resources: Resources = Resources()
    ports: tuple[PortRequest, ...] = ()
    mounts: tuple[Mount, ...] = ()
    volumes: tuple[Volume, ...] = ()
    """Directories that each execution finds beside the image, sorted by their names."""
    inputs: tuple[JobInput, ...] = ()
    """Files from elsewhere that each execution finds, sorted by their names."""
    ulimits: tuple[Ulimit, ...] = ()
    files: tuple[InlineFile, ...] = ()
    secrets: tuple[SecretUse, ...] = ()
    security: Security = Security()
    exit_codes: ExitRules = NO_EXIT_RULES
    expand: bool = False
    """Whether placeholders in words, variables and files are replaced."""
    code: JobCode | None = None
    """What each execution gets a copy of; None: nothing."""
    outputs: OutputTerms = ALL_OUTPUTS
    """Which of its outputs are stored, and for how long."""
    checkpoint: JobCheckpoint | None = None
    """What its executions save for the next attempt; None: nothing."""

    @property
    def fetches(self) -> bool:
        """Whether its executions may have to fetch data before they start."""
        return bool(self.inputs) or self.checkpoint is not None or (self.code is not None and self.code.git is not None)

    @property
    def runtime(self) -> RuntimeKind:
        """Containers for roles with an image, plain processes otherwise."""
        return RuntimeKind.DOCKER if self.image else RuntimeKind.PROCESS


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """The limits in time of one attempt."""

    check_in: timedelta = timedelta(minutes=10)
    """From placement until every execution has checked in and is armed; does not slide."""
    fetch: timedelta = timedelta(hours=1)
    """How long all inputs of an execution may take; the time for checking in is counted on top."""
    stall: timedelta = timedelta(minutes=5)
    """How long an input may go without a byte."""
    store: timedelta = timedelta(hours=24)
    """How long what an execution has left may take to the depot, from the end of its user code."""
    grace: timedelta = timedelta(seconds=10)
    """Between SIGTERM and SIGKILL."""
    run: timedelta | None = None
    """Longest time that user code may run; None: no limit."""
    queue: timedelta | None = None
    """Longest time of an attempt in the queue, where what it waits outside does not count; None: no limit."""
    expected: timedelta | None = None
    """How long user code will run, as its owner thinks: a hint for estimates; None: nobody knows."""
    lost_after: timedelta = DEFAULT_LOST_AFTER
    """How long a node may be silent before what it runs of this job is lost."""
    preempt: timedelta | None = None
    """Between notice and SIGKILL where the job comes back after a stop; None: at least half a minute, or `grace`."""
    idle: timedelta | None = None
    """How long the attempt may go unused before it is stopped; zero: for ever.

    None: for ever, unless the job is interactive; settled at the submit.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """A job as accepted: N executions that start together or not at all."""

    name: str
    roles: tuple[Role, ...]
    """The roles in rank order: rank 0 is the first execution of the first role."""
    network: Network = Network.HOST
    success: SuccessRule | str | None = None
    """A rule that says who must end well, or the name of the role that must; the others are then stopped.

    None: all, or those that decide in jobs of the framework; settled at the submit.
    """
    priority: int = 0
    """Higher goes first; -1000 … 1000."""
    job_class: JobClass | None = None
    """How surely it keeps what it gets; None: as its project says."""
    packing: Packing = Packing.PACK
    max_per_node: int | None = None
    """Most executions of this job on one node."""
    node_labels: Mapping[str, str] = field(default_factory=dict)
    """Only nodes that carry all of these labels."""
    pools: tuple[PoolChoice, ...] = ()
    """The pools in which it is placed, in this order; empty: in any."""
    node_types: tuple[str, ...] = ()
    """Only nodes whose label `type` has one of these values; empty: whatever it is."""
    exclude_nodes: tuple[NodeId, ...] = ()
    """Nodes on which it is not placed."""
    tolerations: tuple[Toleration, ...] = ()
    """Taints of nodes that it puts up with."""
    affinity: Affinity = NO_AFFINITY
    """Nodes that it needs or would rather have, by what their labels say."""
    topology: Topology = ANYWHERE
    """How close to each other its nodes are to be."""
    exclusive: bool = False
    """Whether it has its nodes for itself."""
    timeouts: Timeouts = Timeouts()
    restarts: RestartPolicy = field(default_factory=RestartPolicy)
    on_preempt: OnPreempt = DEFAULT_ON_PREEMPT
    on_disconnect: OnDisconnect = OnDisconnect.KEEP
    project: str = ""
    """The project whose members may see it and give it orders.

    Empty: the owner's only project, else `default`; settled at its submit.
    """
    framework: Framework | None = None
    """What user code is written for, so that it finds its peers as it is; None: nothing beyond what every job gets."""
    dialects: tuple[Dialect, ...] = ()
    """Other systems whose variables and files user code finds as well; their order means nothing."""
    gang_commands: bool | None = None
    """Whether user code may run commands in the other executions of its attempt.

    None: where the framework needs it, for which it is settled at the submit.
    """
    labels: Mapping[str, str] = field(default_factory=dict)
    """What people find the job by; nothing is placed by them."""
    interactive: Interactive | None = None
    """None: nobody is expected to work in it."""
    stdin: bool = False
    """Whether the main program of rank 0 reads what people who attach to it send."""
    tty: bool = False
    """Whether the main program of rank 0 has a terminal; then it reads what people send as well."""
    hold: bool = False
    """Whether it waits from the submit on until somebody releases it."""
    not_before: datetime | None = None
    """The time until which it waits; None: it may begin at once."""
    delete_after: timedelta | None = None
    """How long after its end it is forgotten with its logs; None: somebody deletes it."""

    @property
    def main_program(self) -> MainProgramStreams | None:
        """What the main program of rank 0 has for people who attach; a terminal has input as well."""
        if self.tty:
            return MainProgramStreams.TTY
        return MainProgramStreams.STDIN if self.stdin else None

    @property
    def idle_limit(self) -> timedelta | None:
        """How long an attempt may go unused; None: for ever."""
        limit = self.timeouts.idle
        return None if limit is None or limit == NEVER_IDLE else limit

    @property
    def armed_within(self) -> timedelta:
        """How long an attempt may take from placement until all are armed; the time for fetching is a part of it."""
        fetch = self.timeouts.fetch if any(role.fetches for role in self.roles) else timedelta()
        return self.timeouts.check_in + fetch

    @property
    def ends_within(self) -> timedelta | None:
        """How long after its placement an attempt has ended for sure; None: it has no limit on run time."""
        limit = self.timeouts.run
        return None if limit is None else self.armed_within + limit + self.timeouts.grace

    @property
    def size(self) -> int:
        """The number of executions (world size)."""
        return sum(role.count for role in self.roles)

    @property
    def deciding(self) -> range | None:
        """The ranks that must end well, after which the others are stopped; None: all must."""
        if self.success == SuccessRule.RANK0:
            return range(1)
        return next((ranks for role, ranks in self.ranks_by_role() if role.name == self.success), None)

    def ranks_by_role(self) -> Iterator[tuple[Role, range]]:
        """Each role with the ranks of its executions, in the order of ranks."""
        first = 0
        for role in self.roles:
            yield role, range(first, first + role.count)
            first += role.count

    def role_of(self, rank: int) -> Role:
        """The role to which a rank belongs."""
        for role in self.roles:
            if rank < role.count:
                return role
            rank -= role.count
        raise IndexError(f"job {self.name} has {self.size} executions; there is no rank {rank}")
