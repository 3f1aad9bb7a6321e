"""The clients' calls about data of jobs, as gRPC has them."""

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.refusals import translated
from coordinator.service.data.left import OutputOperations
from coordinator.service.data.uploads import DataOperations
from muster.rpc.v1 import data_pb2 as pb
from muster.rpc.v1 import data_pb2_grpc
from muster.wire import checks
from muster.wire.data.outputs import job_outputs_to_wire
from muster.wire.sharing.storage import depot_use_to_wire


class DataService(data_pb2_grpc.DataServiceServicer):
    """Translates calls about data of jobs."""

    def __init__(self, data: DataOperations, outputs: OutputOperations) -> None:
        self._data = data
        self._outputs = outputs

    @translated
    async def Upload(self, request: pb.UploadRequest, context: Context) -> pb.UploadResponse:
        """A ticket with which a folder may be put into the depot."""
        shown = await self._data.upload(caller(), request.project)
        return pb.UploadResponse(depot=shown.depot, ticket=shown.ticket)

    @translated
    async def Storage(self, request: pb.StorageRequest, context: Context) -> pb.StorageResponse:
        """What the depot held when it was looked through last."""
        return depot_use_to_wire(await self._data.storage(caller()))

    @translated
    async def Outputs(self, request: pb.OutputsRequest, context: Context) -> pb.OutputsResponse:
        """What the executions of a job have left, and the way to it."""
        checks.few(request.ranks, "OutputsRequest.ranks")
        found, following = await self._outputs.list(
            caller(), request.job, attempt=request.attempt, ranks=frozenset(request.ranks), first=request.first
        )
        return job_outputs_to_wire(found, following)
