"""The fleet testbed: several nodes on one Linux machine.

Each node is a network namespace with an address on a common bridge, a host name and a Docker engine of its own. File
system and process ids are shared, so a test can look into everything. It needs root, iproute2, iptables and Docker.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path

from tests.e2e.engine import Engine
from tests.e2e.images import Image
from tests.e2e.programs import Program, environment
from tests.e2e.slots import NAMESPACES, Slot, take_slot

PROGRAMS = ("ip", "iptables", "nsenter", "unshare", "mount", "containerd", "dockerd", "runc")

COORDINATOR = 2
FIRST_NODE = 11
"""Last parts of addresses."""

GPU_HOOK_DIRECTORY = "bin"

CHAOS = "mfleet-chaos"
"""The comment on rules inside a node that `heal` removes."""


def lacking() -> str | None:
    """Why there can be no fleet here; None where there can."""
    if os.geteuid() != 0:
        return "the fleet testbed needs root"
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    return f"the fleet testbed needs {', '.join(missing)}" if missing else None


ARRIVING = ("INPUT", "--in-interface", "eth0")
LEAVING = ("OUTPUT", "--out-interface", "eth0")


class Place:
    """A network namespace with an address on the bridge and a host name."""

    def __init__(self, slot: Slot, name: str, last: int) -> None:
        self.name = name
        self.address = slot.address(last)
        self.directory = slot.directory / name
        self._namespace = f"{slot.prefix}{name}"
        self.namespace = NAMESPACES / self._namespace
        """The file that stands for its network."""
        self._link = f"{slot.prefix}{last}"  # at most 15 characters, whatever the name
        self.directory.mkdir()
        uts = self.directory / "uts"
        uts.touch()
        sh("ip", "netns", "add", self._namespace)
        sh("ip", "link", "add", self._link, "type", "veth", "peer", "name", "eth0", "netns", self._namespace)
        sh("ip", "link", "set", self._link, "master", slot.bridge, "up")
        sh("unshare", f"--uts={uts}", "hostname", name)
        # Not `ip netns exec`: that hides the cgroup mounts from dockerd.
        self.enter = ("nsenter", f"--net={self.namespace}", f"--uts={uts}", "--")
        self.run("ip", "link", "set", "lo", "up")
        self.run("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")

    def run(self, *argv: str, within: float = 60.0) -> str:
        """What a program prints that runs here to its end; CalledProcessError if that is a bad one."""
        return sh(*self.enter, *argv, within=within)

    def start(self, argv: Sequence[str], *, log: Path, env: Mapping[str, str] | None = None) -> Program:
        """A program that runs here beside the test."""
        return Program(f"{log.stem} on {self.name}", [*self.enter, *argv], log=log, env=env)

    def partition(self) -> None:
        """Cut the cable."""
        sh("ip", "link", "set", self._link, "down")

    def half_open(self) -> None:
        """Drop what arrives here; what leaves still reaches the others."""
        self._drop(*ARRIVING)

    def mute(self) -> None:
        """Drop what leaves; what the others send still arrives here."""
        self._drop(*LEAVING)

    def lose(self, share: float) -> None:
        """Drop a share (0 … 1) of the packets that arrive here, at random."""
        self._drop(*ARRIVING, "--match", "statistic", "--mode", "random", "--probability", str(share))

    def heal(self) -> None:
        """Mend what `partition`, `half_open`, `mute` and `lose` did."""
        sh("ip", "link", "set", self._link, "up")
        for rule in self.run("iptables", "--wait", "--list-rules").splitlines():
            if CHAOS in rule.split():
                self.run("iptables", "--wait", "--delete", *rule.split()[1:])

    def _drop(self, chain: str, *which: str) -> None:
        comment = ("--match", "comment", "--comment", CHAOS)
        self.run("iptables", "--wait", "--insert", chain, *which, *comment, "--jump", "DROP")


class Node(Place):
    """A place with a Docker engine."""

    def __init__(self, slot: Slot, number: int) -> None:
        super().__init__(slot, f"node{number}", FIRST_NODE + number - 1)
        self.env = {"PATH": f"{slot.directory / GPU_HOOK_DIRECTORY}:{os.environ['PATH']}"}
        """Variables with which a daemon finds what only the testbed has."""
        self.engine = Engine(self.directory, self.enter, bridge=f"172.31.{number}.1/24", env=self.env)


class Fleet:
    """The nodes and the place of the coordinator."""

    def __init__(self, slot: Slot, size: int) -> None:
        self.directory = slot.directory
        away_from_overlay(slot.directory)
        _write_gpu_hook(slot.directory / GPU_HOOK_DIRECTORY)
        join(slot)
        self.coordinator = Place(slot, "coord", COORDINATOR)
        self.nodes = tuple(Node(slot, number) for number in range(1, size + 1))

    def await_ready(self) -> None:
        """Return when every engine answers."""
        for node in self.nodes:
            node.engine.await_ready()

    def load(self, *images: Image) -> None:
        """Import images into every engine, all at once."""
        with ThreadPoolExecutor(max_workers=len(self.nodes)) as pool:
            for image in images:
                list(pool.map(Engine.load, [node.engine for node in self.nodes], repeat(image)))

    def close(self) -> None:
        """End the engines and their containers; the slot clears away the rest."""
        for node in self.nodes:
            node.engine.begin_stop()
        for node in self.nodes:
            node.engine.stop()


@contextmanager
def open_fleet(size: int) -> Iterator[Fleet]:
    """A fleet whose engines answer; nothing of it is left when the context ends, however it ends."""
    with take_slot() as slot:
        fleet = Fleet(slot, size)
        fleet.await_ready()
        try:
            yield fleet
        finally:
            fleet.close()


def sh(*argv: str, within: float = 60.0) -> str:
    """What a program prints that runs to its end; AssertionError with its output if that is a bad one."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=within, env=environment())
    if done.returncode:
        raise AssertionError(f"{' '.join(argv)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def join(slot: Slot) -> None:
    """The bridge; a Docker engine of the machine itself sets FORWARD to DROP, which must not hit us."""
    sh("ip", "link", "add", slot.bridge, "type", "bridge")
    sh("ip", "address", "add", f"{slot.address(1)}/24", "dev", slot.bridge)
    sh("ip", "link", "set", slot.bridge, "up")
    comment = ("--match", "comment", "--comment", slot.prefix)
    ends = ("--in-interface", slot.bridge, "--out-interface", slot.bridge)
    sh("iptables", "--wait", "--insert", "FORWARD", *ends, *comment, "--jump", "ACCEPT")


def _write_gpu_hook(directory: Path) -> None:
    """dockerd accepts GPU requests when it finds this program; a container then sees which GPUs it was given."""
    directory.mkdir()
    hook = directory / "nvidia-container-runtime-hook"
    hook.write_text("#!/bin/sh\nexit 0\n")
    hook.chmod(0o755)


def away_from_overlay(directory: Path) -> None:
    """Docker's fast storage does not work on top of an overlay file system; memory serves instead."""
    if sh("stat", "--file-system", "--format=%T", str(directory)).strip() == "overlayfs":
        sh("mount", "-t", "tmpfs", "tmpfs", str(directory))
