"""The SDK for nodes and the fleet: what nodes have, whether work is placed on them, who has joined, what happens."""

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from muster.client.calls import PAGE, Calls
from muster.domain.data.volume import KeptVolumeView, VolumeId
from muster.domain.errors import (
    ExhaustedError,
    InvalidJobError,
    MusterError,
    PermissionDeniedError,
    UnavailableError,
)
from muster.domain.fleet.access import EnrolledNode
from muster.domain.fleet.node import NodeView
from muster.domain.fleet.window import Window
from muster.domain.jobs.placing.taint import Taint, TaintName
from muster.rpc.v1 import data_pb2
from muster.rpc.v1 import nodes_pb2 as pb
from muster.rpc.v1.data_pb2_grpc import DataServiceStub
from muster.rpc.v1.nodes_pb2_grpc import NodeServiceStub, WindowServiceStub
from muster.wire import checks
from muster.wire.data.volumes import named_volume, volume_view_from_wire
from muster.wire.nodes import node_from_wire, taint_name_to_wire, taint_to_wire, window_from_wire, window_to_wire

if TYPE_CHECKING:
    from muster.domain.event import FleetEvent, NodeEvent
    from muster.domain.feed import FeedBatch, FeedPart, FeedPlace
    from muster.domain.notifications.happening import EventPlace, Happening
    from muster.domain.telemetry.coordinator_figures import CoordinatorFigures


class NodesClient:
    """Nodes, reached as `client.nodes`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of NodeService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(NodeServiceStub)

    async def list(self) -> tuple[NodeView, ...]:
        """All nodes by name.

        >>> free = [node.name for node in await client.nodes.list() if node.state is NodeState.READY]
        """
        nodes: list[NodeView] = []
        token = ""
        while True:
            page = await self._calls.ask(self._stub.List, pb.ListNodesRequest(page_size=PAGE, page_token=token))
            nodes.extend(map(node_from_wire, page.nodes))
            token = page.next_page_token
            if not token:
                return tuple(nodes)

    async def get(self, name: str) -> NodeView:
        """One node.

        >>> node = await client.nodes.get("gpu-a")
        """
        return node_from_wire(await self._calls.ask(self._stub.Get, pb.GetNodeRequest(node=name)))

    async def remove(self, name: str) -> NodeView:
        """Give up a node that will not come back, and on which nothing runs any more; the node as it was.

        Raises ConflictError while its agent is connected.

        >>> await client.nodes.remove("gpu-a")
        """
        request = pb.RemoveNodeRequest(node=name)
        return node_from_wire((await self._calls.ask(self._stub.Remove, request, pauses=())).node)

    async def cordon(self, name: str, *, reason: str = "", restart_jobs: bool = False) -> NodeView:
        """Have nothing new placed on a node; with `restart_jobs` what runs there begins anew elsewhere, at once.

        >>> await client.nodes.cordon("gpu-a", reason="a fan is broken", restart_jobs=True)
        """
        request = pb.CordonNodeRequest(node=name, reason=reason, restart_jobs=restart_jobs)
        return node_from_wire(await self._calls.ask(self._stub.Cordon, request))

    async def uncordon(self, name: str) -> NodeView:
        """Have jobs placed on a node again.

        >>> await client.nodes.uncordon("gpu-a")
        """
        return node_from_wire(await self._calls.ask(self._stub.Uncordon, pb.UncordonNodeRequest(node=name)))

    async def label(
        self, name: str, labels: Mapping[str, str], removed: Collection[str] = ()
    ) -> tuple[Mapping[str, str], bool]:
        """Change labels of a node; all labels that tokens and operators have given it, and whether they have changed.

        >>> labels, changed = await client.nodes.label("gpu-a", {"rack": "7"}, removed=["spare"])
        """
        request = pb.LabelNodeRequest(node=name, labels=labels, removed=removed)
        answer = await self._calls.ask(self._stub.Label, request)
        return dict(answer.labels), answer.changed

    async def taint(
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
        >>> await client.nodes.taint("gpu-a", [bad], after=timedelta(minutes=1))
        """
        request = pb.TaintNodeRequest(
            node=name,
            given=map(taint_to_wire, taints),
            removed=map(taint_name_to_wire, removed),
            after=checks.duration(after),
        )
        return node_from_wire(await self._calls.ask(self._stub.Taint, request))

    async def events(self, name: str, *, after: int = 0, follow: bool = False) -> "AsyncGenerator[NodeEvent, None]":
        """What happened to a node, oldest first; with `follow` also what happens from now on, without an end.

        The story of a removed node can be read as well. `after` is the number of the last event that is known. A broken
        connection is taken up again without losing or repeating an event.

        >>> async for event in client.nodes.events("gpu-a"):
        ...     print(event.at, event.sentence)
        """
        from muster.client.streams.event_streams import events_of  # noqa: PLC0415 - seldom
        from muster.wire.stories import node_event_from_wire  # noqa: PLC0415 - seldom

        request = pb.NodeEventsRequest(node=name, after=after, follow=follow)
        async with aclosing(events_of(self._calls, self._stub.Events, request, node_event_from_wire)) as told:
            async for event in told:
                yield event

    async def enrolled(self) -> tuple[EnrolledNode, ...]:
        """Nodes that have joined with a token, by name.

        >>> names = [node.name for node in await client.nodes.enrolled()]
        """
        from muster.rpc.v1 import trust_pb2  # noqa: PLC0415 - seldom
        from muster.wire.trust import enrolled_node_from_wire  # noqa: PLC0415 - seldom

        answer = await self._calls.ask(self._trust.ListEnrolledNodes, trust_pb2.ListEnrolledNodesRequest())
        return tuple(map(enrolled_node_from_wire, answer.nodes))

    async def revoke(self, name: str) -> EnrolledNode:
        """Send a node away: its certificate counts no more.

        >>> await client.nodes.revoke("gpu-a")
        """
        from muster.rpc.v1 import trust_pb2  # noqa: PLC0415 - seldom
        from muster.wire.trust import enrolled_node_from_wire  # noqa: PLC0415 - seldom

        return enrolled_node_from_wire(
            await self._calls.ask(self._trust.RevokeNode, trust_pb2.RevokeNodeRequest(node=name))
        )

    async def agents_port(self) -> int:
        """The port of the coordinator's host at which it serves agents; 0 where it serves none beside clients.

        >>> port = await client.nodes.agents_port()
        """
        from muster.rpc.v1.trust_pb2 import AuthorityRequest  # noqa: PLC0415 - seldom
        from muster.rpc.v1.trust_pb2_grpc import JoinServiceStub  # noqa: PLC0415 - seldom

        stub: Any = self._calls.stub(JoinServiceStub)
        try:
            return int((await self._calls.ask(stub.Authority, AuthorityRequest())).agents_port)
        except (UnavailableError, PermissionDeniedError, ExhaustedError):
            raise
        except MusterError:
            return 0  # that of `muster up` serves agents where it serves clients

    @property
    def _trust(self) -> Any:  # noqa: ANN401 - the stub of TrustService
        from muster.rpc.v1.trust_pb2_grpc import TrustServiceStub  # noqa: PLC0415 - seldom

        return self._calls.stub(TrustServiceStub)


class FleetClient:
    """The fleet as a whole, reached as `client.fleet`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def events(self, *, after: int = 0, follow: bool = False) -> "AsyncGenerator[FleetEvent, None]":
        """What happened to the fleet, oldest first; with `follow` also what happens from now on, without an end.

        `after` is the number of the last event that is known. A broken connection is taken up again without losing or
        repeating an event.

        >>> async for event in client.fleet.events():
        ...     print(event.at, event.sentence)
        """
        from muster.client.streams.event_streams import events_of  # noqa: PLC0415 - seldom
        from muster.rpc.v1.fleet_pb2 import FleetEventsRequest  # noqa: PLC0415 - seldom
        from muster.rpc.v1.fleet_pb2_grpc import FleetServiceStub  # noqa: PLC0415 - seldom
        from muster.wire.stories import fleet_event_from_wire  # noqa: PLC0415 - seldom

        stub: Any = self._calls.stub(FleetServiceStub)
        request = FleetEventsRequest(after=after, follow=follow)
        async with aclosing(events_of(self._calls, stub.Events, request, fleet_event_from_wire)) as told:
            async for event in told:
                yield event

    async def figures(self) -> "CoordinatorFigures":
        """How much the coordinator has worked since it began, and what it holds at the moment.

        >>> print((await client.fleet.figures()).turns)
        """
        from muster.rpc.v1 import fleet_pb2, fleet_pb2_grpc  # noqa: PLC0415 - seldom
        from muster.wire.telemetry.coordinator_figures import coordinator_figures_from_wire  # noqa: PLC0415 - seldom

        call = self._calls.stub(fleet_pb2_grpc.FleetServiceStub).Figures
        return coordinator_figures_from_wire(await self._calls.ask(call, fleet_pb2.CoordinatorFiguresRequest()))

    async def feed(
        self, parts: "Collection[FeedPart | str]", place: "FeedPlace | None" = None
    ) -> "AsyncGenerator[FeedBatch, None]":
        """All jobs, nodes, projects and the queue, as far as they are asked for; then their changes, without an end.

        `place`: how far you have come; it is in every batch. A batch that begins `anew` says that it was too far back,
        or that the coordinator was started anew: forget what you know. A broken connection is taken up again. Whoever
        may do something else than before is cut off with NotSignedInError, and begins anew.

        >>> async for batch in client.fleet.feed(["jobs"]):
        ...     print([job.id for job in batch.jobs])
        """
        from muster.client.streams.resumed import resumed  # noqa: PLC0415 - seldom
        from muster.domain.feed import FeedPlace  # noqa: PLC0415 - seldom
        from muster.rpc.v1.feed_pb2 import FollowFeedRequest  # noqa: PLC0415 - seldom
        from muster.rpc.v1.feed_pb2_grpc import FeedServiceStub  # noqa: PLC0415 - seldom
        from muster.wire.feeds.batches import feed_batch_from_wire, feed_place_to_wire  # noqa: PLC0415 - seldom

        request = FollowFeedRequest(place=feed_place_to_wire(place or FeedPlace()), parts=parts)
        call: Any = self._calls.stub(FeedServiceStub).Follow
        async with aclosing(resumed(self._calls, call, request)) as messages:
            async for message in messages:
                batch = feed_batch_from_wire(message)
                yield batch
                request.place.CopyFrom(message.place)


class EventsClient:
    """All events, reached as `client.events`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def all(
        self, *, after: "EventPlace | None" = None, follow: bool = False
    ) -> "AsyncGenerator[Happening, None]":
        """What happened to all jobs that the caller may see, to nodes, and for operators of all projects to the fleet.

        `after` is the `place` of the last event that is known. Without it, `follow` begins with what happens from now
        on, and else all that is stored is told. A broken connection is taken up again without losing or repeating an
        event.

        >>> async for happening in client.events.all(follow=True):
        ...     print(happening.event.at, happening.event.id)
        """
        async with aclosing(self.pages(after=after, follow=follow)) as pages:
            async for happenings, _ in pages:
                for each in happenings:
                    yield each

    async def pages(
        self, *, after: "EventPlace | None" = None, follow: bool = False
    ) -> "AsyncGenerator[tuple[tuple[Happening, ...], EventPlace], None]":
        """The same in pages, each with the place where its reader goes on, also past what it may not see.

        A follower is told at first where it begins.

        >>> async for happenings, place in client.events.pages(follow=True):
        ...     print(len(happenings), place)
        """
        from muster.client.streams.resumed import resumed  # noqa: PLC0415 - seldom
        from muster.rpc.v1.events_pb2 import AllEventsRequest  # noqa: PLC0415 - seldom
        from muster.rpc.v1.events_pb2_grpc import EventServiceStub  # noqa: PLC0415 - seldom
        from muster.wire.notifications.happenings import (  # noqa: PLC0415 - seldom
            event_place_from_wire,
            event_place_to_wire,
            happening_from_wire,
        )

        stub: Any = self._calls.stub(EventServiceStub)
        known = None if after is None else event_place_to_wire(after)
        request = AllEventsRequest(after=known, follow=follow)
        async with aclosing(resumed(self._calls, stub.All, request)) as pages:
            async for page in pages:
                place = event_place_from_wire(page.place)
                request.after.CopyFrom(page.place)
                yield tuple(map(happening_from_wire, page.happenings)), place


class WindowsClient:
    """Windows, reached as `client.windows`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of WindowService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(WindowServiceStub)

    async def list(self) -> tuple[Window, ...]:
        """All windows that have not ended, by name.

        >>> for window in await client.windows.list():
        ...     print(window.name, window.begins, window.ends)
        """
        answer = await self._calls.ask(self._stub.List, pb.ListWindowsRequest())
        return tuple(map(window_from_wire, answer.windows))

    async def put(self, window: Window) -> Window:
        """Set a window, in place of the one of its name.

        >>> await client.windows.put(Window(name="disks", nodes=("gpu-1",), begins=evening, ends=morning))
        """
        request = pb.PutWindowRequest(window=window_to_wire(window))
        return window_from_wire(await self._calls.ask(self._stub.Put, request))

    async def remove(self, name: str) -> Window:
        """Remove a window, so that its nodes take jobs again; the window as it was.

        >>> await client.windows.remove("disks")
        """
        request = pb.RemoveWindowRequest(name=name)
        # Never repeated: what was removed by a request whose answer got lost would not be found by the next one.
        return window_from_wire(await self._calls.ask(self._stub.Remove, request, pauses=()))


class VolumesClient:
    """Volumes that nodes keep for the jobs of projects, reached as `client.volumes`."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    @property
    def _stub(self) -> Any:  # noqa: ANN401 - that of DataService, whose two kinds mypy cannot tell apart here
        return self._calls.stub(DataServiceStub)

    async def list(self, *, project: str = "", node: str = "") -> tuple[KeptVolumeView, ...]:
        """Volumes by node, project and name, of the projects that one may look at; empty: all projects, all nodes.

        >>> bytes_kept = sum(volume.bytes for volume in await client.volumes.list(project="vision"))
        """
        found: list[KeptVolumeView] = []
        place = ""
        while True:
            volumes, place = await self.page(project=project, node=node, page=place)
            found.extend(volumes)
            if not place:
                return tuple(found)

    async def page(
        self, *, project: str = "", node: str = "", page: str = ""
    ) -> tuple[tuple[KeptVolumeView, ...], str]:
        """A part of the list, and what leads to the next one; empty after the last one.

        >>> volumes, following = await client.volumes.page(node="gpu-a")
        """
        after = _named(page) if page else None
        request = data_pb2.VolumesRequest(project=project, node=node, after=after)
        answer = await self._calls.ask(self._stub.Volumes, request)
        found = tuple(map(volume_view_from_wire, answer.volumes))
        return found, f"{found[-1].node}/{found[-1].project}/{found[-1].name}" if answer.more else ""

    async def remove(self, node: str, project: str, name: str) -> KeptVolumeView:
        """Remove one volume from one node, with all that lies in it; the volume as it was.

        Raises ConflictError while a job uses it, and UnavailableError while the node is away.

        >>> await client.volumes.remove("gpu-a", "vision", "models")
        """
        request = named_volume(node, VolumeId(project, name))
        # Never repeated: what was removed by a request whose answer got lost would not be found by the next one.
        return volume_view_from_wire(await self._calls.ask(self._stub.RemoveVolume, request, pauses=()))


def _named(page: str) -> data_pb2.NamedVolume:
    """The last volume of the page before."""
    parts = page.split("/")
    if len(parts) != len(data_pb2.NamedVolume.DESCRIPTOR.fields):
        raise InvalidJobError(f"{page!r} is no page of a list of volumes; begin without one")
    return data_pb2.NamedVolume(node=parts[0], project=parts[1], name=parts[2])
