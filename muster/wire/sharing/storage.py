"""What the depot holds."""

from muster.domain.data.depot_use import DepotUse, ProjectHolding
from muster.rpc.v1 import data_pb2 as pb
from muster.wire import checks


def depot_use_to_wire(use: DepotUse) -> pb.StorageResponse:
    """What the depot holds."""
    return pb.StorageResponse(
        at=checks.timestamp(use.at),
        projects=[
            pb.ProjectHolding(project=name, trees=held.trees, objects=held.objects, bytes=held.bytes, limit=held.limit)
            for name, held in use.projects.items()
        ],
        objects=use.objects,
        bytes=use.bytes,
        unnamed_objects=use.unnamed_objects,
        unnamed_bytes=use.unnamed_bytes,
        removed_objects=use.removed_objects,
        removed_bytes=use.removed_bytes,
    )


def depot_use_from_wire(message: pb.StorageResponse) -> DepotUse:
    """What the depot holds; raises WireError."""
    return DepotUse(
        at=checks.moment(message.at, "StorageResponse.at"),
        projects={
            checks.label(each.project, "ProjectHolding.project"): ProjectHolding(
                trees=each.trees, objects=each.objects, bytes=each.bytes, limit=each.limit
            )
            for each in message.projects
        },
        objects=message.objects,
        bytes=message.bytes,
        unnamed_objects=message.unnamed_objects,
        unnamed_bytes=message.unnamed_bytes,
        removed_objects=message.removed_objects,
        removed_bytes=message.removed_bytes,
    )
