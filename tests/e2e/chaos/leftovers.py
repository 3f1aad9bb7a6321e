"""What runs and what is left on a node: ours, which must be nothing at the end, and other people's, as it was."""

import json
import os
import signal
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from agent.runtimes.kernel.confinement import members
from tests.e2e.chaos.jobs import IMAGE
from tests.e2e.fleet import Node

LABEL = "muster."
"""How the labels of our containers begin."""

EXECUTION = "MUSTER_EXECUTION_ID="
"""How the variable begins that every process of an execution inherits."""

OURS = ("muster-launcher", "muster-supervis", "muster-killer")
"""How the kernel abbreviates the names of our programs."""


class Strangers:
    """A container and a process that are none of Muster's business."""

    def __init__(self, node: Node) -> None:
        self._node = node
        body = {"Image": IMAGE, "Cmd": ["sleep", "100000"], "HostConfig": {"NetworkMode": "host"}}
        created = json.loads(node.engine.call("POST", "/containers/create", body, name="stranger"))
        self._container: str = created["Id"]
        node.engine.call("POST", f"/containers/{self._container}/start")
        self._before = self._state()
        self._process = node.start(["sleep", "100000"], log=node.directory / "stranger.log")

    def harm(self) -> Iterator[str]:
        """What happened to them."""
        if self._state() != self._before:
            yield f"the stranger on {self._node.name} was {self._before}, is {self._state()}"
        if not self._process.running:
            yield f"a process of somebody else on {self._node.name} has ended"

    def end(self) -> None:
        """End them."""
        self._process.kill()

    def _state(self) -> tuple[bool, str, int]:
        state = self._node.engine.inspect(self._container)["State"]
        return state["Running"], state["StartedAt"], state["Pid"]


def containers_of_ours(node: Node) -> list[str]:
    """The names of Muster's containers, running or not."""
    return [
        container["Names"][0]
        for container in node.engine.containers()
        if any(label.startswith(LABEL) for label in container["Labels"])
    ]


def processes_of_ours(node: Node, mark: str) -> Iterator[str]:
    """Our programs but the agent, and what has a mark of user code, in the network of a node or in its containers."""
    for pid, name, variables in _processes(node):
        if name in OURS or f"CHAOS_MARK={mark}" in variables or any(each.startswith(EXECUTION) for each in variables):
            yield f"process {pid} ({name})"


def spawners(node: Node) -> Mapping[str, Sequence[int]]:
    """The processes of executions whose programs start workers in sessions of their own, by execution."""
    found: dict[str, list[int]] = defaultdict(list)
    for pid, _, variables in _processes(node):
        if any(each.startswith("CHAOS_WORKERS=") for each in variables):
            for each in variables:
                if each.startswith(EXECUTION):
                    found[each.removeprefix(EXECUTION)].append(pid)
    return found


def kill_process_of(execution: str, pid: int) -> str:
    """Kill a process if it is still one of that execution; what it was."""
    with suppress(OSError):
        handle = os.pidfd_open(pid)  # first: nobody else gets its number into this
        try:
            directory = Path("/proc") / str(pid)
            if f"{EXECUTION}{execution}" in _variables(directory):
                words = (directory / "cmdline").read_bytes().split(b"\0")
                signal.pidfd_send_signal(handle, signal.SIGKILL)
                return "a worker" if words[-2].isdigit() else "the program"
        finally:
            os.close(handle)
    return "it has ended meanwhile"


def cgroups_of_ours(state: Path) -> Iterator[str]:
    """Cgroups that an agent with this state made, but those in which a spare supervisor waits alone."""
    prefix = f"muster-{(state / 'identity').read_text()[:8]}-"
    for above, names, _ in os.walk("/sys/fs/cgroup"):  # which does not mind what is removed meanwhile
        for name in names:
            if name.startswith(prefix):
                inside = [_name(pid) for pid in members(f"{above}/{name}")]
                if inside != ["muster-supervis"]:
                    yield f"cgroup {above}/{name} with {inside}"


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "a process that has ended"


def _processes(node: Node) -> Iterator[tuple[int, str, Collection[str]]]:
    """Number, name and variables of everything in the network of a node."""
    namespace = node.namespace.stat().st_ino
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if (directory / "ns/net").stat().st_ino == namespace:
                yield int(directory.name), (directory / "comm").read_text().strip(), _variables(directory)
        except OSError:
            continue  # ended meanwhile


def _variables(directory: Path) -> Collection[str]:
    return (directory / "environ").read_bytes().decode(errors="replace").split("\0")
