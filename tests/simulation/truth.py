"""What really is on the nodes, whatever anybody believes: executions with their user code."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from random import Random
from typing import Protocol

from agent.core.terms import Terms
from muster.domain.data.checkpoint import StoredPart
from muster.domain.fleet.node import Gpu, Inventory, RuntimeOffer
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import PortLease, Roster
from muster.domain.ids import ExecutionId, GpuUuid, NodeId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import RuntimeKind
from tests.simulation.killer import Killer
from tests.simulation.network import Path
from tests.simulation.used_things import GPU_MEMORY
from tests.simulation.world import Clock, Timer

KILLED = 137
TERMINATED = 143


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """What the user code of an execution does."""

    seconds: float | None
    """None: it runs until it is stopped."""
    code: int = 0
    on_term: float = 0.1
    """Seconds that it takes to end when it is asked to."""
    term_code: int = TERMINATED
    log: int = 1000
    """Bytes that it prints."""
    storing: float | None = None
    """Seconds that it takes to store what it leaves; None: it leaves nothing."""


class Loss(StrEnum):
    """What took user code away without leaving an exit code."""

    NODE = "the node was restarted"
    ENGINE = "Docker was stopped"


@dataclass(slots=True, kw_only=True)
class Note:
    """What an agent notes of an execution for the next one."""

    address: str
    ports: tuple[PortLease, ...]
    terms: Terms
    started_at: datetime | None = None


@dataclass(slots=True, kw_only=True)
class Sandbox:
    """One execution on its node."""

    assignment: Assignment
    behaviour: Behaviour
    ports: tuple[PortLease, ...] = ()
    """Held from the end of its preparation on."""
    roster: Roster | None = None
    """There once it was armed."""
    used: list[int] = field(default_factory=list)
    """When somebody used it and its agent saw that, since that agent began."""
    started: bool = False
    exit: Exit | None = None
    on_exit: Callable[[], None] | None = None
    """The call for the end of it."""
    ending: Timer | None = None
    lost: Loss | None = None
    """Why nobody can tell how it ended."""
    note: Note | None = None
    """The note on the node's disk."""
    start_noted: bool = False
    """Whether its agent noted that it was about to start it."""
    stored: bool = False
    """Whether the depot has what it left, and keeps it."""
    tree: str = ""
    """The tree of its code; empty: it has none, or not yet."""
    saved: list[StoredPart] = field(default_factory=list)
    """Parts of checkpoints that the depot has of it."""
    terminated: bool = False
    fenced: str = ""
    """Why its agent or the killer ended it, as noted on the node's disk."""
    swept: bool = False
    """Whether it was cleared away although nobody ordered that: its agent cannot adopt it."""

    @property
    def execution(self) -> ExecutionId:
        return self.assignment.execution

    @property
    def running(self) -> bool:
        return self.started and self.exit is None

    @property
    def in_docker(self) -> bool:
        return self.assignment.role.runtime is RuntimeKind.DOCKER

    @property
    def adoptable(self) -> bool:
        """Whether another agent finds it: a container, or a process that was started."""
        return self.roster is not None if self.in_docker else self.started


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a node is made of."""

    gpus: int
    cpus: int
    memory: int
    docker: bool
    live_restore: bool = False
    """Whether containers go on without the Docker engine."""
    labels: dict[str, str] = field(default_factory=dict)
    profiles: tuple[str, ...] = ()
    """The MIG devices into which the first GPU is divided; empty: all GPUs are whole."""


class Nature(Protocol):
    """What decides what user code does, and sees all that really happens."""

    def behaviour(self, assignment: Assignment) -> Behaviour: ...

    def sandbox_made(self, node: "SimulatedNode", sandbox: Sandbox) -> None: ...

    def code_started(self, node: "SimulatedNode", sandbox: Sandbox) -> None: ...

    def code_ended(self, sandbox: Sandbox) -> None: ...

    def fenced(self, node: "SimulatedNode", sandbox: Sandbox) -> None: ...


class SimulatedNode:
    """A node with its GPUs and what runs on it; its agent comes and goes."""

    def __init__(self, clock: Clock, name: NodeId, parts: Parts, nature: Nature) -> None:
        world = self.world = clock.world
        self.name = name
        self.address = f"address of {name}"
        self.nature = nature
        self.identity = f"{name} of old"
        self.chance: Random = world.chance(f"node {name}")
        self.up = Path(world, world.chance(f"up {name}"))
        self.down = Path(world, world.chance(f"down {name}"))
        self.sandboxes: dict[ExecutionId, Sandbox] = {}
        self.broken: dict[GpuUuid, str] = {}
        """GPUs with a fault."""
        self.on_fault: Callable[[], None] | None = None
        """The agent's ear for GPU faults."""
        self.engine_away = False
        """Whether Docker does not answer."""
        self.on_engine: list[Callable[[], None]] = []
        """Calls for when Docker goes or comes back."""
        self.boots = 0
        self.killer = Killer(clock, name, self._kill_overdue)
        self._parts = parts

    def inventory(self) -> Inventory:
        """The inventory that somebody sees who looks now."""
        offers = [RuntimeOffer(kind=RuntimeKind.PROCESS, version="1")]
        if self._parts.docker:
            problem = "Docker does not work" if self.engine_away else None
            offers.append(RuntimeOffer(kind=RuntimeKind.DOCKER, version="1", problem=problem))
        return Inventory(
            cpus=self._parts.cpus,
            memory=self._parts.memory,
            gpus=tuple(gpu for index in range(self._parts.gpus) for gpu in self._gpus(index)),
            runtimes=tuple(offers),
            labels=self._parts.labels,
        )

    def gpu(self, index: int) -> GpuUuid:
        return GpuUuid(f"GPU-{self.name}-{index}")

    @property
    def gpu_count(self) -> int:
        return self._parts.gpus

    def _gpus(self, index: int) -> Iterator[Gpu]:
        """The GPU, or its MIG devices; a fault of it is one of theirs."""
        whole = self._gpu(index)
        if index or not self._parts.profiles:
            yield whole
            return
        for place, profile in enumerate(self._parts.profiles):
            uuid, model = GpuUuid(f"MIG-{self.name}-{index}-{place}"), f"{whole.model} MIG {profile}"
            yield replace(whole, uuid=uuid, model=model, mig=profile, mig_enabled=True, memory=10 << 30)

    def _gpu(self, index: int) -> Gpu:
        uuid = self.gpu(index)
        problems = (self.broken[uuid],) if uuid in self.broken else ()
        model = "H100" if index % 4 != 3 else "L4"
        return Gpu(uuid=uuid, index=index, model=model, memory=GPU_MEMORY, numa_node=index // 4, problems=problems)

    def start_code(self, sandbox: Sandbox) -> None:
        """User code runs from here on; starting twice starts once."""
        if sandbox.started:
            return
        sandbox.started = True
        self.world.tell("user code starts", self.name, sandbox.assignment.job)
        self.nature.code_started(self, sandbox)
        if sandbox.behaviour.seconds is not None:
            self._end_after(sandbox, sandbox.behaviour.seconds, sandbox.behaviour.code)

    def terminate(self, sandbox: Sandbox, grace: float) -> None:
        """SIGTERM, and SIGKILL after the grace period."""
        if not sandbox.running:
            return
        if sandbox.terminated:
            self.world.after(grace, lambda: self.end_code(sandbox, KILLED))
            return
        sandbox.terminated = True
        due = sandbox.ending
        wish = sandbox.behaviour.on_term
        code = sandbox.behaviour.term_code if wish < grace else KILLED
        self._end_after(sandbox, min(wish, grace), code)
        if due is not None and self.chance.random() < 0.2:
            due.cancel()  # otherwise it may end by itself just before

    def end_code(self, sandbox: Sandbox, code: int) -> None:
        if not sandbox.running:
            return
        if sandbox.ending is not None:
            sandbox.ending.cancel()
        sandbox.exit = Exit(code=code)
        self.world.tell(f"user code of rank {sandbox.assignment.rank} ends: {code}", self.name, sandbox.assignment.job)
        self.nature.code_ended(sandbox)
        if sandbox.on_exit is not None:
            sandbox.on_exit()

    def _kill_overdue(self, execution: ExecutionId) -> None:
        sandbox = self.sandboxes.get(execution)
        if sandbox is not None and sandbox.running:
            self.world.tell(f"killer kills {execution}", self.name, sandbox.assignment.job)
            sandbox.fenced = sandbox.fenced or "killed by muster-killer"
            self.nature.fenced(self, sandbox)
            self.end_code(sandbox, KILLED)

    def sweep(self, execution: ExecutionId) -> None:
        """Clear an execution away that cannot be adopted."""
        self.sandboxes.pop(execution).swept = True

    def lose_power(self) -> None:
        """Everything that runs ends, and nobody hears of it or how."""
        self.boots += 1
        self.killer.note({})
        for sandbox in self.sandboxes.values():
            sandbox.on_exit = None
            self._lose(sandbox, Loss.NODE)
        self.engine_away = False

    @property
    def has_docker(self) -> bool:
        return self._parts.docker

    def lose_engine(self) -> None:
        """Docker is stopped, with its containers unless they go on without it; or it is killed, then they go on."""
        self.world.tell("Docker goes away", self.name)
        self.engine_away = True
        if not self._parts.live_restore and self.chance.random() < 0.5:
            self._lose_containers()
        self._tell_of_engine()

    def restore_engine(self) -> None:
        """Docker is back; if containers do not go on without it, it ends those that did."""
        if not self.engine_away:
            return
        self.world.tell("Docker is back", self.name)
        if not self._parts.live_restore:
            self._lose_containers()
        self.engine_away = False
        self._tell_of_engine()

    def _tell_of_engine(self) -> None:
        waiting, self.on_engine = self.on_engine, []
        for act in waiting:
            act()

    def _lose_containers(self) -> None:
        for sandbox in list(self.sandboxes.values()):
            if sandbox.in_docker:
                self._lose(sandbox, Loss.ENGINE)

    def _lose(self, sandbox: Sandbox, loss: Loss) -> None:
        if sandbox.running:
            sandbox.lost = loss
            self.end_code(sandbox, KILLED)

    def _end_after(self, sandbox: Sandbox, seconds: float, code: int) -> None:
        sandbox.ending = self.world.after(seconds, lambda: self.end_code(sandbox, code))
