"""Checkpoints of executions on the wire: what is to be saved, what is stored, and what is restored."""

from itertools import pairwise

from muster.domain.data.checkpoint import (
    DEFAULT_SETTLE,
    LONGEST_CHECKPOINT_NAME,
    MOST_EARLIER,
    MOST_PARTS,
    PARTS_TOLD,
    TREES_RESTORED,
    CheckpointPass,
    CheckpointPlace,
    CheckpointRanks,
    CheckpointToRestore,
    JobCheckpoint,
    NamedTree,
    StoredPart,
    ToldCheckpoints,
    is_checkpoint_name,
)
from muster.domain.data.digest import is_digest
from muster.domain.data.outputs import LARGEST_OUTPUTS, MOST_OUTPUTS
from muster.domain.data.upload import DepotPass
from muster.domain.fleet.secret import SecretKind
from muster.rpc.v1 import agents_pb2
from muster.rpc.v1 import model_pb2 as pb
from muster.wire import checks
from muster.wire.checks import WireError


def job_checkpoint_to_wire(checkpoint: JobCheckpoint) -> pb.Checkpoint:
    """What the executions of a role save."""
    return pb.Checkpoint(
        path=checkpoint.path or "",
        ranks=checkpoint.ranks,
        done=checkpoint.done,
        settle=checks.duration(checkpoint.settle),
        keep=checkpoint.keep,
        to=checkpoint.to,
        secret=checkpoint.secret,
    )


def job_checkpoint_from_wire(message: pb.Checkpoint) -> JobCheckpoint:
    """What the executions of a role save; raises WireError."""
    return JobCheckpoint(
        path=message.path or None,
        ranks=checks.word(CheckpointRanks, message.ranks or CheckpointRanks.ALL, "Checkpoint.ranks"),
        done=message.done,
        settle=checks.span(message.settle, "Checkpoint.settle") if message.HasField("settle") else DEFAULT_SETTLE,
        keep=message.keep,
        to=message.to,
        secret=message.secret,
    )


def told_checkpoints_to_wire(told: ToldCheckpoints) -> pb.ToldCheckpoints:
    """What an agent tells of the checkpoints of one execution."""
    return pb.ToldCheckpoints(
        parts=(
            pb.StoredPart(
                name=each.name, number=each.number, tree=each.tree, size=each.size, files=each.files, bytes=each.bytes
            )
            for each in told.parts
        ),
        storing=told.storing,
        trouble=told.trouble,
    )


def told_checkpoints_from_wire(message: pb.ToldCheckpoints) -> ToldCheckpoints:
    """What an agent tells of the checkpoints of one execution; raises WireError."""
    checks.between(len(message.parts), 0, PARTS_TOLD, "ToldCheckpoints.parts")
    parts = tuple(map(_part_from_wire, message.parts))
    if any(before.number >= after.number for before, after in pairwise(parts)):
        raise WireError("ToldCheckpoints.parts", "are not in the order of their numbers")
    return ToldCheckpoints(parts=parts, storing=message.storing, trouble=checks.message(message.trouble))


def to_restore_to_wire(restore: CheckpointToRestore) -> pb.CheckpointToRestore:
    """What an execution finds before its user code starts."""
    trees = (pb.NamedTree(tree=each.tree, size=each.size) for each in restore.trees)
    return pb.CheckpointToRestore(attempt=restore.attempt, name=restore.name, trees=trees)


def to_restore_from_wire(message: pb.CheckpointToRestore) -> CheckpointToRestore:
    """What an execution finds before its user code starts; raises WireError."""
    checks.between(len(message.trees), 0, TREES_RESTORED, "CheckpointToRestore.trees")
    return CheckpointToRestore(
        attempt=checks.between(message.attempt, 1, checks.MAX_COUNT, "CheckpointToRestore.attempt"),
        name=checkpoint_name(message.name, "CheckpointToRestore.name"),
        trees=tuple(
            NamedTree(
                tree=_digest(each.tree, "NamedTree.tree"),
                size=checks.between(each.size, 1, LARGEST_OUTPUTS, "NamedTree.size"),
            )
            for each in message.trees
        ),
    )


def checkpoint_pass_to_wire(shown: CheckpointPass) -> agents_pb2.DataResponse:
    """What a node is told that stores parts of checkpoints, or restores one."""
    depot, place = shown.depot, shown.place
    answer = agents_pb2.DataResponse(depot=depot.depot, ticket=depot.ticket, allowed=depot.allowed)
    if place is not None:
        answer.key.CopyFrom(agents_pb2.DeliveredSecret(name=place.secret, kind=SecretKind.S3, values=place.opens))
        answer.place.CopyFrom(
            agents_pb2.CheckpointPlace(to=place.to, earlier=place.earlier, kept=place.kept, told=place.told)
        )
    return answer


def checkpoint_pass_from_wire(message: agents_pb2.DataResponse) -> CheckpointPass:
    """What a node is told that stores parts of checkpoints, or restores one; raises WireError."""
    depot = DepotPass(depot=message.depot, ticket=message.ticket, allowed=message.allowed)
    if not message.HasField("place"):
        return CheckpointPass(depot=depot)
    said = message.place
    checks.between(len(said.earlier), 0, MOST_EARLIER, "CheckpointPlace.earlier")
    place = CheckpointPlace(
        to=checks.plain(said.to, "CheckpointPlace.to"),
        secret=message.key.name,
        opens=dict(message.key.values),
        earlier=tuple(checks.plain(each, "CheckpointPlace.earlier") for each in said.earlier),
        kept=tuple(_digest(each, "CheckpointPlace.kept") for each in said.kept),
        told=checks.between(said.told, 0, MOST_PARTS, "CheckpointPlace.told"),
    )
    return CheckpointPass(depot=depot, place=place)


def checkpoint_name(name: str, where: str) -> str:
    """The name of a checkpoint; raises WireError."""
    if not is_checkpoint_name(name):
        raise WireError(where, f"is no name of a checkpoint, which has at most {LONGEST_CHECKPOINT_NAME} bytes")
    return name


def _part_from_wire(message: pb.StoredPart) -> StoredPart:
    return StoredPart(
        name=checkpoint_name(message.name, "StoredPart.name"),
        number=checks.between(message.number, 1, MOST_PARTS, "StoredPart.number"),
        tree=_digest(message.tree, "StoredPart.tree"),
        size=checks.between(message.size, 1, LARGEST_OUTPUTS, "StoredPart.size"),
        files=checks.between(message.files, 1, MOST_OUTPUTS, "StoredPart.files"),
        bytes=checks.between(message.bytes, 0, LARGEST_OUTPUTS, "StoredPart.bytes"),
    )


def _digest(text: str, where: str) -> str:
    if not is_digest(text):
        raise WireError(where, "is no SHA-256")
    return text
