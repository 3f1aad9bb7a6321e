"""Carries faults out on a fleet, and starts what ended by itself again, as systemd would."""

import asyncio
import json
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

import psutil

from agent.fencing.deadlines import why_fenced
from agent.runtimes.process.record import read_record
from tests.e2e.chaos.disks import Disk
from tests.e2e.chaos.faults import COORDINATOR, ENGINES, LINKS, Fault, Kind, Spell
from tests.e2e.chaos.leftovers import kill_process_of, spawners
from tests.e2e.chaos.story import Story
from tests.e2e.deployment import Deployment
from tests.e2e.engine import Daemon
from tests.e2e.fleet import Node, Place
from tests.e2e.programs import Program

OPTIONS = ("--gpu-provider", "fake:4xH100", "--processes")
WATCH_EVERY = 0.5

STRIKE_EVERY = 0.5
"""Seconds between two processes of a job that are killed."""

FILL_EVERY = 0.2
"""Seconds until a full disk is filled again: programs give something back."""

KILLED = {
    Kind.DOCKERD: (Daemon.DOCKERD,),
    Kind.CONTAINERD: (Daemon.CONTAINERD,),
    Kind.ENGINE: (Daemon.DOCKERD, Daemon.CONTAINERD),
}


class Damage:
    """What is broken now on a fleet."""

    def __init__(self, muster: Deployment, disks: Mapping[str, Disk], story: Story) -> None:
        self._muster = muster
        self._disks = disks
        self._relay: Program
        self._story = story
        self._nodes = {node.name: node for node in muster.fleet.nodes}
        self._broken: set[str] = set()
        self._one_by_one: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.spells: list[Spell] = []
        """Spells of what was broken and is mended."""
        self.struck: set[str] = set()
        """Executions of which a process was killed."""

    async def suffer(self, fault: Fault) -> None:
        """Let a fault come at its time, last, and be mended."""
        await asyncio.sleep(max(0.0, fault.at - self._story.now))
        async with self._one_by_one[fault.subject]:  # what was killed may take longer to start than was planned
            self._story.tell(str(fault), counted=fault.kind)
            self._broken.add(fault.subject)
            began = ended = uptime()
            try:
                await asyncio.to_thread(self._break, fault)
                began = uptime()
                await self._last(fault)
                ended = uptime()
                self._count_fenced(fault)
            finally:
                await asyncio.to_thread(self._mend, fault)
                self._broken.discard(fault.subject)
            self.spells.append(Spell(fault=fault, began=began, ended=ended, mended=uptime()))
            self._story.tell(f"mended: {fault.kind} on {fault.place}")

    async def watch(self) -> None:
        """Start again what ends by itself, until cancelled; coordinator, relay and agents must not."""
        while True:
            await asyncio.sleep(WATCH_EVERY)
            for subject, program, restart, must_not in list(self._programs()):
                if subject in self._broken or program.running:
                    continue
                told = f"{program.name} ended by itself: {program.output[-300:].strip()}"
                self._story.find(told) if must_not else self._story.tell(told.replace("\n", " | "))
                await asyncio.to_thread(restart)

    def start_agent(self, node: Node) -> None:
        """An agent with simulated GPUs that runs processes and containers."""
        self._muster.start_agent(node, *OPTIONS)

    def start_relay(self) -> None:
        """The relay, to which people attach."""
        self._relay = self._muster.start_relay()

    async def _last(self, fault: Fault) -> None:
        """Let a fault go on for its time."""
        until = uptime() + fault.lasting
        if fault.kind is Kind.PROCESSES:
            await self._hunt(fault, until)
        while fault.kind is Kind.DISK and uptime() < until:
            await asyncio.sleep(FILL_EVERY)
            await asyncio.to_thread(self._disks[fault.place].fill)
        await asyncio.sleep(max(0.0, until - uptime()))

    async def _hunt(self, fault: Fault, until: float) -> None:
        """Kill a random process of one execution after the other, as long as it has any."""
        chance, prey = Random(fault.at), ""
        while uptime() < until:
            found = await asyncio.to_thread(spawners, self._nodes[fault.place])
            if prey and prey not in found:
                return
            if found:
                prey = prey or chance.choice(sorted(found))
                await asyncio.to_thread(self._strike, fault.place, prey, found[prey], chance)
            await asyncio.sleep(STRIKE_EVERY)

    def _strike(self, place: str, execution: str, pids: Sequence[int], chance: Random) -> None:
        """Kill the supervisor of an execution or a process that it started."""
        record = read_record(self.execution_directories(place) / execution)
        supervisor = record.supervisor if record is not None and record.supervisor.runs else None
        self.struck.add(execution)  # before: what it does then is looked at afterwards
        pid = chance.choice([*sorted(pids), *([supervisor.pid] if supervisor is not None else [])])
        if supervisor is not None and pid == supervisor.pid:
            supervisor.kill()
            name = "its supervisor"
        else:
            name = kill_process_of(execution, pid)
        self._story.tell(f"killed process {pid} of {execution}: {name}", counted="processes of jobs killed")

    def _programs(self) -> Iterator[tuple[str, Program, Callable[[], object], bool]]:
        """Subject, program, how it is started again, whether it must not end by itself."""
        yield f"coordinator of {COORDINATOR}", self._muster.coordinator, self._muster.start_coordinator, True
        yield f"relay of {COORDINATOR}", self._relay, self.start_relay, True
        for name, node in self._nodes.items():
            yield f"agent of {name}", self._muster.agents[name], partial(self.start_agent, node), True
            for daemon in Daemon:
                program = node.engine.daemons[daemon]
                yield f"engine of {name}", program, partial(node.engine.restart, daemon), False

    def _break(self, fault: Fault) -> None:
        if fault.kind in LINKS:
            self._break_link(fault)
        elif fault.kind in ENGINES:
            for daemon in KILLED[fault.kind]:
                self._nodes[fault.place].engine.daemons[daemon].kill()
        elif fault.kind is Kind.COORDINATOR:
            self._muster.coordinator.kill()
        elif fault.kind is Kind.RELAY:
            self._relay.kill()
        elif fault.kind is Kind.AGENT:
            self._muster.agents[fault.place].kill()
        elif fault.kind is Kind.DISK:
            self._disks[fault.place].fill()
        elif fault.kind is not Kind.PROCESSES:
            self._kill_one(fault)

    def _break_link(self, fault: Fault) -> None:
        place = self._place(fault)
        match fault.kind:
            case Kind.CUT:
                place.partition()
            case Kind.HALF_OPEN:
                place.half_open()
            case Kind.MUTE:
                place.mute()
            case _:
                place.lose(fault.share)

    def _kill_one(self, fault: Fault) -> None:
        """A launcher, or one of the supervisors that have a program."""
        pids = self._launchers(fault.place) if fault.kind is Kind.LAUNCHER else self._supervisors(fault.place)
        for pid in pids[:1]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self._story.tell(f"killed process {pid}, a {fault.kind.split()[0]} on {fault.place}")

    def _mend(self, fault: Fault) -> None:
        if fault.kind in LINKS:
            self._place(fault).heal()
        elif fault.kind in ENGINES:
            for daemon in reversed(KILLED[fault.kind]):
                self._nodes[fault.place].engine.restart(daemon)
        elif fault.kind is Kind.COORDINATOR:
            self._muster.start_coordinator()
        elif fault.kind is Kind.RELAY:
            self.start_relay()
        elif fault.kind is Kind.AGENT:
            self.start_agent(self._nodes[fault.place])
        elif fault.kind is Kind.DISK:
            self._disks[fault.place].empty()

    def _place(self, fault: Fault) -> Place:
        return self._muster.fleet.coordinator if fault.place == COORDINATOR else self._nodes[fault.place]

    def _launchers(self, node: str) -> list[int]:
        with suppress(psutil.NoSuchProcess):
            children = psutil.Process(self._muster.agents[node].pid).children()
            return [child.pid for child in children if child.name().startswith("muster-launch")]
        return []

    def _supervisors(self, node: str) -> list[int]:
        records = [record.read_text() for record in sorted(self.execution_directories(node).glob("*/process.json"))]
        return [
            json.loads(record.splitlines()[0])["supervisor"]["pid"]
            for record in records
            if "supervisor" in record and "code" not in record
        ]

    def _count_fenced(self, fault: Fault) -> None:
        """What the killer killed while there was no agent."""
        for directory in self.execution_directories(fault.place).glob("*") if fault.kind is Kind.AGENT else ():
            why = why_fenced(directory)
            if why.startswith("killed by muster-killer"):
                self._story.tell(f"{directory.name}: {why}", counted="executions that a killer ended")

    def execution_directories(self, node: str) -> Path:
        """Where an agent keeps what belongs to its executions."""
        return self._muster.directory / node / "executions"


def uptime() -> float:
    """The clock of `/proc/uptime`."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
