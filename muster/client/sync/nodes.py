"""The synchronous form of `muster.client.services.nodes`, made from it by `make sync`; change that one."""

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING

from muster.client.blocking.loop_thread import LoopThread
from muster.client.blocking.stream import SyncStream
from muster.client.services.nodes import EventsClient, FleetClient, NodesClient, VolumesClient, WindowsClient
from muster.domain.data.volume import KeptVolumeView
from muster.domain.fleet.access import EnrolledNode
from muster.domain.fleet.node import NodeView
from muster.domain.fleet.window import Window
from muster.domain.jobs.placing.taint import Taint, TaintName

if TYPE_CHECKING:
    from muster.domain.event import FleetEvent, NodeEvent
    from muster.domain.feed import FeedBatch, FeedPart, FeedPlace
    from muster.domain.notifications.happening import EventPlace, Happening
    from muster.domain.telemetry.coordinator_figures import CoordinatorFigures


class SyncNodesClient:
    """Nodes, reached as `client.nodes`."""

    def __init__(self, own: NodesClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def list(self) -> tuple[NodeView, ...]:
        """All nodes by name.

        >>> free = [node.name for node in client.nodes.list() if node.state is NodeState.READY]
        """
        return self._loop.run(self._own.list())

    def get(self, name: str) -> NodeView:
        """One node.

        >>> node = client.nodes.get("gpu-a")
        """
        return self._loop.run(self._own.get(name))

    def remove(self, name: str) -> NodeView:
        """Give up a node that will not come back, and on which nothing runs any more; the node as it was.

        Raises ConflictError while its agent is connected.

        >>> client.nodes.remove("gpu-a")
        """
        return self._loop.run(self._own.remove(name))

    def cordon(self, name: str, *, reason: str = "", restart_jobs: bool = False) -> NodeView:
        """Have nothing new placed on a node; with `restart_jobs` what runs there begins anew elsewhere, at once.

        >>> client.nodes.cordon("gpu-a", reason="a fan is broken", restart_jobs=True)
        """
        return self._loop.run(self._own.cordon(name, reason=reason, restart_jobs=restart_jobs))

    def uncordon(self, name: str) -> NodeView:
        """Have jobs placed on a node again.

        >>> client.nodes.uncordon("gpu-a")
        """
        return self._loop.run(self._own.uncordon(name))

    def label(
        self, name: str, labels: Mapping[str, str], removed: Collection[str] = ()
    ) -> tuple[Mapping[str, str], bool]:
        """Change labels of a node; all labels that tokens and operators have given it, and whether they have changed.

        >>> labels, changed = client.nodes.label("gpu-a", {"rack": "7"}, removed=["spare"])
        """
        return self._loop.run(self._own.label(name, labels, removed))

    def taint(
        self,
        name: str,
        taints: Collection[Taint],
        removed: Collection[TaintName] = (),
        *,
        after: timedelta = timedelta(),
    ) -> NodeView:
        """Give a node taints, or take some away; the node as it is then.

        What runs there in spite of a given `NoExecute` begins anew elsewhere once `after` has passed.

        >>> bad = Taint(key="gpu", value="bad", effect=TaintEffect.NO_EXECUTE)
        >>> client.nodes.taint("gpu-a", [bad], after=timedelta(minutes=1))
        """
        return self._loop.run(self._own.taint(name, taints, removed, after=after))

    def events(self, name: str, *, after: int = 0, follow: bool = False) -> "SyncStream[NodeEvent]":
        """What happened to a node, oldest first; with `follow` also what happens from now on, without an end.

        The story of a removed node can be read as well. `after` is the number of the last event that is known. A broken
        connection is taken up again without losing or repeating an event.

        >>> for event in client.nodes.events("gpu-a"):
        ...     print(event.at, event.sentence)
        """
        return self._loop.stream(self._own.events(name, after=after, follow=follow))

    def enrolled(self) -> tuple[EnrolledNode, ...]:
        """Nodes that have joined with a token, by name.

        >>> names = [node.name for node in client.nodes.enrolled()]
        """
        return self._loop.run(self._own.enrolled())

    def revoke(self, name: str) -> EnrolledNode:
        """Send a node away: its certificate counts no more.

        >>> client.nodes.revoke("gpu-a")
        """
        return self._loop.run(self._own.revoke(name))

    def agents_port(self) -> int:
        """The port of the coordinator's host at which it serves agents; 0 where it serves none beside clients.

        >>> port = client.nodes.agents_port()
        """
        return self._loop.run(self._own.agents_port())


class SyncFleetClient:
    """The fleet as a whole, reached as `client.fleet`."""

    def __init__(self, own: FleetClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def events(self, *, after: int = 0, follow: bool = False) -> "SyncStream[FleetEvent]":
        """What happened to the fleet, oldest first; with `follow` also what happens from now on, without an end.

        `after` is the number of the last event that is known. A broken connection is taken up again without losing or
        repeating an event.

        >>> for event in client.fleet.events():
        ...     print(event.at, event.sentence)
        """
        return self._loop.stream(self._own.events(after=after, follow=follow))

    def figures(self) -> "CoordinatorFigures":
        """How much the coordinator has worked since it began, and what it holds at the moment.

        >>> print((client.fleet.figures()).turns)
        """
        return self._loop.run(self._own.figures())

    def feed(self, parts: "Collection[FeedPart | str]", place: "FeedPlace | None" = None) -> "SyncStream[FeedBatch]":
        """All jobs, nodes, projects and the queue, as far as they are asked for; then their changes, without an end.

        `place`: how far you have come; it is in every batch. A batch that begins `anew` says that it was too far back,
        or that the coordinator was started anew: forget what you know. A broken connection is taken up again. Whoever
        may do something else than before is cut off with NotSignedInError, and begins anew.

        >>> for batch in client.fleet.feed(["jobs"]):
        ...     print([job.id for job in batch.jobs])
        """
        return self._loop.stream(self._own.feed(parts, place))


class SyncEventsClient:
    """All events, reached as `client.events`."""

    def __init__(self, own: EventsClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def all(self, *, after: "EventPlace | None" = None, follow: bool = False) -> "SyncStream[Happening]":
        """What happened to all jobs that the caller may see, to nodes, and for operators of all projects to the fleet.

        `after` is the `place` of the last event that is known. Without it, `follow` begins with what happens from now
        on, and else all that is stored is told. A broken connection is taken up again without losing or repeating an
        event.

        >>> for happening in client.events.all(follow=True):
        ...     print(happening.event.at, happening.event.id)
        """
        return self._loop.stream(self._own.all(after=after, follow=follow))

    def pages(
        self, *, after: "EventPlace | None" = None, follow: bool = False
    ) -> "SyncStream[tuple[tuple[Happening, ...], EventPlace]]":
        """The same in pages, each with the place where its reader goes on, also past what it may not see.

        A follower is told at first where it begins.

        >>> for happenings, place in client.events.pages(follow=True):
        ...     print(len(happenings), place)
        """
        return self._loop.stream(self._own.pages(after=after, follow=follow))


class SyncWindowsClient:
    """Windows, reached as `client.windows`."""

    def __init__(self, own: WindowsClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def list(self) -> tuple[Window, ...]:
        """All windows that have not ended, by name.

        >>> for window in client.windows.list():
        ...     print(window.name, window.begins, window.ends)
        """
        return self._loop.run(self._own.list())

    def put(self, window: Window) -> Window:
        """Set a window, in place of the one of its name.

        >>> client.windows.put(Window(name="disks", nodes=("gpu-1",), begins=evening, ends=morning))
        """
        return self._loop.run(self._own.put(window))

    def remove(self, name: str) -> Window:
        """Remove a window, so that its nodes take jobs again; the window as it was.

        >>> client.windows.remove("disks")
        """
        return self._loop.run(self._own.remove(name))


class SyncVolumesClient:
    """Volumes that nodes keep for the jobs of projects, reached as `client.volumes`."""

    def __init__(self, own: VolumesClient, loop: LoopThread) -> None:
        self._own = own
        self._loop = loop

    def list(self, *, project: str = "", node: str = "") -> tuple[KeptVolumeView, ...]:
        """Volumes by node, project and name, of the projects that one may look at; empty: all projects, all nodes.

        >>> bytes_kept = sum(volume.bytes for volume in client.volumes.list(project="vision"))
        """
        return self._loop.run(self._own.list(project=project, node=node))

    def page(self, *, project: str = "", node: str = "", page: str = "") -> tuple[tuple[KeptVolumeView, ...], str]:
        """A part of the list, and what leads to the next one; empty after the last one.

        >>> volumes, following = client.volumes.page(node="gpu-a")
        """
        return self._loop.run(self._own.page(project=project, node=node, page=page))

    def remove(self, node: str, project: str, name: str) -> KeptVolumeView:
        """Remove one volume from one node, with all that lies in it; the volume as it was.

        Raises ConflictError while a job uses it, and UnavailableError while the node is away.

        >>> client.volumes.remove("gpu-a", "vision", "models")
        """
        return self._loop.run(self._own.remove(node, project, name))
