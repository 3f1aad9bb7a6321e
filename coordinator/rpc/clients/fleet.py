"""The clients' calls about the fleet as a whole, and about all that happens in it, as gRPC has them."""

import asyncio
from contextlib import aclosing

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.clients.jobs import READER_PATIENCE
from coordinator.rpc.refusals import translated
from coordinator.rpc.streams import offer, streaming
from coordinator.service.figures import FigureOperations
from coordinator.service.notifications.happenings import HappeningOperations, HappeningWish
from coordinator.service.stories import StoryOperations, StoryWish
from muster.rpc.v1 import events_pb2, events_pb2_grpc, fleet_pb2_grpc
from muster.rpc.v1 import fleet_pb2 as pb
from muster.wire import checks
from muster.wire.notifications.happenings import event_place_from_wire, happenings_to_wire
from muster.wire.stories import fleet_event_to_wire
from muster.wire.telemetry.coordinator_figures import coordinator_figures_to_wire


class FleetService(fleet_pb2_grpc.FleetServiceServicer):
    """Translates calls about the fleet."""

    def __init__(self, stories: StoryOperations, figures: FigureOperations, patience: float = READER_PATIENCE) -> None:
        self._stories = stories
        self._figures = figures
        self._patience = patience
        self.closing = asyncio.Event()

    @streaming
    async def Events(self, request: pb.FleetEventsRequest, context: Context) -> None:  # type: ignore[override]  # the stubs know no answer by `context.write`
        """What happened to the fleet, oldest first; with `follow` until the caller leaves."""
        after = checks.between(request.after, 0, checks.MAX_BYTES, "FleetEventsRequest.after")
        wish = StoryWish(after=after, most=request.limit, follow=request.follow)
        async with aclosing(self._stories.of_fleet(caller(), wish)) as pages:
            async for events in pages:
                await offer(context, pb.FleetEvents(events=map(fleet_event_to_wire, events)), self._patience)

    @translated
    async def Figures(self, request: pb.CoordinatorFiguresRequest, context: Context) -> pb.CoordinatorFigures:
        """How much the coordinator has worked, and what it holds."""
        return coordinator_figures_to_wire(await self._figures.show(caller()))


class EventService(events_pb2_grpc.EventServiceServicer):
    """Translates the call about all that happens."""

    def __init__(self, happenings: HappeningOperations, patience: float = READER_PATIENCE) -> None:
        self._happenings = happenings
        self._patience = patience
        self.closing = asyncio.Event()

    @streaming
    async def All(self, request: events_pb2.AllEventsRequest, context: Context) -> None:  # type: ignore[override]  # the stubs know no answer by `context.write`
        """What happened to everything, oldest first; with `follow` until the caller leaves."""
        after = event_place_from_wire(request.after) if request.HasField("after") else None
        wish = HappeningWish(after=after, follow=request.follow)
        async with aclosing(self._happenings.all(caller(), wish)) as pages:
            async for page in pages:
                await offer(context, happenings_to_wire(page.happenings, page.place), self._patience)
