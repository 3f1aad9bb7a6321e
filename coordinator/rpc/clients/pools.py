"""The clients' calls about pools, as gRPC has them."""

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.refusals import translated
from coordinator.service.queueing.pools import PoolOperations
from muster import wire
from muster.rpc.v1 import pools_pb2 as pb
from muster.rpc.v1 import pools_pb2_grpc
from muster.wire import checks


class PoolService(pools_pb2_grpc.PoolServiceServicer):
    """Translates calls about pools."""

    def __init__(self, pools: PoolOperations) -> None:
        self._pools = pools

    @translated
    async def List(self, request: pb.ListPoolsRequest, context: Context) -> pb.ListPoolsResponse:
        """All pools, by name."""
        return pb.ListPoolsResponse(pools=map(wire.pool_view_to_wire, await self._pools.list(caller())))

    @translated
    async def Put(self, request: pb.PutPoolRequest, context: Context) -> pb.PutPoolResponse:
        """Set a pool."""
        checks.require(request, "pool")
        pool = wire.pool_from_wire(request.pool)
        warnings = await self._pools.put(caller(), pool, anyway=request.anyway)
        return pb.PutPoolResponse(pool=wire.pool_to_wire(pool), warnings=warnings)

    @translated
    async def Remove(self, request: pb.RemovePoolRequest, context: Context) -> pb.RemovePoolResponse:
        """Say nothing of a pool any longer."""
        pool, warnings = await self._pools.remove(caller(), request.name)
        return pb.RemovePoolResponse(pool=wire.pool_to_wire(pool), warnings=warnings)
