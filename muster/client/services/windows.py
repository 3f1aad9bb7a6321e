"""The SDK for windows: nodes that are out of service, or for one project alone, from a time to a time."""

from typing import Any

from muster import wire
from muster.client.calls import Calls
from muster.domain.fleet.window import Window
from muster.rpc.v1 import nodes_pb2 as pb
from muster.rpc.v1.nodes_pb2_grpc import WindowServiceStub


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
        return tuple(map(wire.window_from_wire, answer.windows))

    async def put(self, window: Window) -> Window:
        """Set a window, in place of the one of its name.

        >>> await client.windows.put(Window(name="disks", nodes=("gpu-1",), begins=evening, ends=morning))
        """
        request = pb.PutWindowRequest(window=wire.window_to_wire(window))
        return wire.window_from_wire(await self._calls.ask(self._stub.Put, request))

    async def remove(self, name: str) -> Window:
        """Remove a window, so that its nodes take jobs again; the window as it was.

        >>> await client.windows.remove("disks")
        """
        request = pb.RemoveWindowRequest(name=name)
        # Never repeated: what was removed by a request whose answer got lost would not be found by the next one.
        return wire.window_from_wire(await self._calls.ask(self._stub.Remove, request, pauses=()))
