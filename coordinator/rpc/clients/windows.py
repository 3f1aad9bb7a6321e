"""The clients' calls about windows, as gRPC has them."""

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.refusals import translated
from coordinator.service.queueing.windows import WindowOperations
from muster import wire
from muster.rpc.v1 import nodes_pb2 as pb
from muster.rpc.v1 import nodes_pb2_grpc
from muster.wire import checks


class WindowService(nodes_pb2_grpc.WindowServiceServicer):
    """Translates calls about windows."""

    def __init__(self, windows: WindowOperations) -> None:
        self._windows = windows

    @translated
    async def List(self, request: pb.ListWindowsRequest, context: Context) -> pb.ListWindowsResponse:
        """All windows that have not ended, by name."""
        return pb.ListWindowsResponse(windows=map(wire.window_to_wire, await self._windows.list(caller())))

    @translated
    async def Put(self, request: pb.PutWindowRequest, context: Context) -> pb.Window:
        """Set a window."""
        checks.require(request, "window")
        return wire.window_to_wire(await self._windows.put(caller(), wire.window_from_wire(request.window)))

    @translated
    async def Remove(self, request: pb.RemoveWindowRequest, context: Context) -> pb.Window:
        """Remove a window."""
        return wire.window_to_wire(await self._windows.remove(caller(), request.name))
