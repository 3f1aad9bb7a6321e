"""What is left on a node: ours, which must be nothing, and other people's, which must be as it was."""

import json
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.chaos.jobs import IMAGE
from tests.e2e.fleet import Node

LABEL = "muster."
"""How the labels of our containers begin."""

OURS = ("muster-launcher", "muster-supervis", "muster-keeper")
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
    """Our programs but the agent, and what has the mark of user code, in the network of a node or in its containers."""
    namespace = (Path("/proc") / str(node.engine.pid) / "ns/net").readlink()
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            name = (directory / "comm").read_text().strip()
            here = (directory / "ns/net").readlink() == namespace
            marked = f"CHAOS_MARK={mark}".encode() in (directory / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # ended meanwhile
        if here and (marked or name in OURS):
            yield f"process {directory.name} ({name})"
