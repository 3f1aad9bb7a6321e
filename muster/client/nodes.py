"""What a client asks about nodes, and orders for them: `Client` says what each is for."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from muster.domain.errors import ExhaustedError, MusterError, PermissionDeniedError, UnavailableError
from muster.domain.fleet.node import NodeView
from muster.rpc.v1 import nodes_pb2 as pb
from muster.rpc.v1.trust_pb2 import AuthorityRequest
from muster.rpc.v1.trust_pb2_grpc import JoinServiceStub
from muster.wire import node_from_wire

if TYPE_CHECKING:
    import grpc.aio

    from muster.client.trust import TrustCall


class NodesClient:
    """The part of `Client` that has to do with nodes; loaded when one is asked for."""

    def __init__(self, ask: "TrustCall", stub: Any) -> None:  # noqa: ANN401 - the stub of NodeService
        self._ask = ask
        self._stub = stub

    async def all(self, page_size: int) -> tuple[NodeView, ...]:
        """All nodes by name, of which so many come with one answer."""
        nodes: list[NodeView] = []
        token = ""
        while True:
            page = await self._ask(self._stub.List, pb.ListNodesRequest(page_size=page_size, page_token=token))
            nodes.extend(map(node_from_wire, page.nodes))
            token = page.next_page_token
            if not token:
                return tuple(nodes)

    async def one(self, name: str) -> NodeView:
        """One node."""
        return node_from_wire(await self._ask(self._stub.Get, pb.GetNodeRequest(node=name)))

    async def remove(self, name: str) -> NodeView:
        """The node as it was."""
        return node_from_wire((await self._ask(self._stub.Remove, pb.RemoveNodeRequest(node=name), pauses=())).node)

    async def cordon(self, name: str, *, reason: str, restart_jobs: bool) -> NodeView:
        """The node, on which nothing new is placed."""
        request = pb.CordonNodeRequest(node=name, reason=reason, restart_jobs=restart_jobs)
        return node_from_wire(await self._ask(self._stub.Cordon, request))

    async def label(
        self, name: str, labels: Mapping[str, str], removed: Collection[str]
    ) -> tuple[Mapping[str, str], bool]:
        """The labels that tokens and operators have given the node, and whether they are others than before."""
        request = pb.LabelNodeRequest(node=name, labels=labels, removed=removed)
        answer = await self._ask(self._stub.Label, request)
        return dict(answer.labels), answer.changed

    async def uncordon(self, name: str) -> NodeView:
        """The node, on which jobs are placed again."""
        return node_from_wire(await self._ask(self._stub.Uncordon, pb.UncordonNodeRequest(node=name)))


async def agents_port(ask: "TrustCall", channel: "grpc.aio.Channel") -> int:
    """The port at which agents are served; 0 where there is none beside clients."""
    try:
        return int((await ask(JoinServiceStub(channel).Authority, AuthorityRequest())).agents_port)
    except (UnavailableError, PermissionDeniedError, ExhaustedError):
        raise
    except MusterError:
        return 0  # that of `muster up` has no such door
