"""The clients' calls about data of jobs, as gRPC has them."""

from coordinator.rpc.callers import Context, caller
from coordinator.rpc.refusals import translated
from coordinator.service.data.checkpoints import CheckpointOperations
from coordinator.service.data.left import OutputOperations
from coordinator.service.data.uploads import DataOperations
from coordinator.service.data.volumes import VolumeOperations
from muster.domain.data.checkpoint import CheckpointId
from muster.rpc.v1 import data_pb2 as pb
from muster.rpc.v1 import data_pb2_grpc
from muster.wire import checks
from muster.wire.data.checkpoints import checkpoint_name
from muster.wire.data.outputs import job_outputs_to_wire, outputs_retry_to_wire
from muster.wire.data.saved import checkpoint_parts_to_wire, checkpoint_view_to_wire, job_checkpoints_to_wire
from muster.wire.data.volumes import volume_named, volume_view_to_wire
from muster.wire.sharing.storage import depot_use_to_wire


class DataService(data_pb2_grpc.DataServiceServicer):
    """Translates calls about data of jobs."""

    def __init__(
        self,
        data: DataOperations,
        outputs: OutputOperations,
        checkpoints: CheckpointOperations,
        volumes: VolumeOperations,
    ) -> None:
        self._data = data
        self._outputs = outputs
        self._checkpoints = checkpoints
        self._volumes = volumes

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

    @translated
    async def RetryOutputs(self, request: pb.RetryOutputsRequest, context: Context) -> pb.RetryOutputsResponse:
        """Have outputs stored again that are not in the depot."""
        checks.few(request.ranks, "RetryOutputsRequest.ranks")
        retry = await self._outputs.retry(
            caller(), request.job, attempt=request.attempt, ranks=frozenset(request.ranks)
        )
        return outputs_retry_to_wire(retry)

    @translated
    async def Checkpoints(self, request: pb.CheckpointsRequest, context: Context) -> pb.CheckpointsResponse:
        """What a job has saved."""
        return job_checkpoints_to_wire(await self._checkpoints.list(caller(), request.job))

    @translated
    async def CheckpointParts(self, request: pb.CheckpointPartsRequest, context: Context) -> pb.CheckpointPartsResponse:
        """The parts of one checkpoint, and the way to them."""
        checks.few(request.ranks, "CheckpointPartsRequest.ranks")
        name = checkpoint_name(request.name, "CheckpointPartsRequest.name") if request.name else ""
        found, following = await self._checkpoints.parts(
            caller(),
            request.job,
            CheckpointId(request.attempt, name),
            ranks=frozenset(request.ranks),
            first=request.first,
        )
        return checkpoint_parts_to_wire(found, following)

    @translated
    async def PinCheckpoint(self, request: pb.NamedCheckpoint, context: Context) -> pb.SavedCheckpoint:
        """Keep a checkpoint until it is unpinned."""
        return checkpoint_view_to_wire(await self._checkpoints.pin(caller(), request.job, _named(request)))

    @translated
    async def UnpinCheckpoint(self, request: pb.NamedCheckpoint, context: Context) -> pb.SavedCheckpoint:
        """Keep a checkpoint no longer than others."""
        return checkpoint_view_to_wire(await self._checkpoints.unpin(caller(), request.job, _named(request)))

    @translated
    async def RemoveCheckpoint(self, request: pb.NamedCheckpoint, context: Context) -> pb.SavedCheckpoint:
        """Remove a checkpoint."""
        return checkpoint_view_to_wire(await self._checkpoints.remove(caller(), request.job, _named(request)))

    @translated
    async def Volumes(self, request: pb.VolumesRequest, context: Context) -> pb.VolumesResponse:
        """The volumes that nodes keep for the jobs of projects."""
        after = volume_named(request.after) if request.HasField("after") else None
        found, more = await self._volumes.list(caller(), project=request.project, node=request.node, after=after)
        return pb.VolumesResponse(volumes=map(volume_view_to_wire, found), more=more)

    @translated
    async def RemoveVolume(self, request: pb.NamedVolume, context: Context) -> pb.VolumeOfNode:
        """Remove one volume from one node."""
        node, volume = volume_named(request)
        return volume_view_to_wire(await self._volumes.remove(caller(), node, volume))


def _named(request: pb.NamedCheckpoint) -> CheckpointId:
    return CheckpointId(request.attempt, checkpoint_name(request.name, "NamedCheckpoint.name"))
