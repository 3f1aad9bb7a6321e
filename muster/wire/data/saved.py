"""What jobs have saved, as people see it, on the wire."""

from muster.domain.data.checkpoint import (
    CheckpointParts,
    CheckpointPartView,
    CheckpointTrouble,
    CheckpointView,
    JobCheckpoints,
)
from muster.domain.data.digest import is_digest
from muster.domain.data.outputs import LARGEST_OUTPUTS, MOST_OUTPUTS
from muster.rpc.v1 import data_pb2 as pb
from muster.wire import checks
from muster.wire.checks import WireError
from muster.wire.data.checkpoints import checkpoint_name


def job_checkpoints_to_wire(saved: JobCheckpoints) -> pb.CheckpointsResponse:
    """What a job has saved."""
    return pb.CheckpointsResponse(
        job=saved.job,
        job_name=saved.job_name,
        checkpoints=map(checkpoint_view_to_wire, saved.checkpoints),
        troubles=(pb.CheckpointTrouble(rank=each.rank, why=each.why) for each in saved.troubles),
    )


def job_checkpoints_from_wire(message: pb.CheckpointsResponse) -> JobCheckpoints:
    """What a job has saved; raises WireError."""
    return JobCheckpoints(
        job=checks.identifier(message.job, "CheckpointsResponse.job"),
        job_name=checks.label(message.job_name, "CheckpointsResponse.job_name"),
        checkpoints=tuple(map(checkpoint_view_from_wire, message.checkpoints)),
        troubles=tuple(
            CheckpointTrouble(rank=_rank(each.rank, "CheckpointTrouble.rank"), why=checks.message(each.why))
            for each in message.troubles
        ),
    )


def checkpoint_view_to_wire(view: CheckpointView) -> pb.SavedCheckpoint:
    """One checkpoint of a job."""
    return pb.SavedCheckpoint(
        attempt=view.attempt,
        name=view.name,
        at=checks.timestamp(view.at),
        files=view.files,
        bytes=view.bytes,
        parts=view.parts,
        needed=view.needed,
        lacking=view.lacking,
        spoiled=view.spoiled,
        pinned=view.pinned,
        bad=view.bad,
        restored=view.restored,
    )


def checkpoint_view_from_wire(message: pb.SavedCheckpoint) -> CheckpointView:
    """One checkpoint of a job; raises WireError."""
    checks.require(message, "at")
    return CheckpointView(
        attempt=checks.between(message.attempt, 1, checks.MAX_COUNT, "SavedCheckpoint.attempt"),
        name=checkpoint_name(message.name, "SavedCheckpoint.name"),
        at=checks.moment(message.at, "SavedCheckpoint.at"),
        files=checks.between(message.files, 0, checks.MAX_BYTES, "SavedCheckpoint.files"),
        bytes=checks.between(message.bytes, 0, checks.MAX_BYTES, "SavedCheckpoint.bytes"),
        parts=checks.between(message.parts, 0, checks.MAX_SIZE, "SavedCheckpoint.parts"),
        needed=checks.between(message.needed, 0, checks.MAX_SIZE, "SavedCheckpoint.needed"),
        lacking=tuple(_rank(each, "SavedCheckpoint.lacking") for each in message.lacking),
        spoiled=tuple(_rank(each, "SavedCheckpoint.spoiled") for each in message.spoiled),
        pinned=message.pinned,
        bad=message.bad,
        restored=message.restored,
    )


def checkpoint_parts_to_wire(found: CheckpointParts, following: int = 0) -> pb.CheckpointPartsResponse:
    """A page of the parts of a checkpoint; `following`: the rank with which the next one begins."""
    return pb.CheckpointPartsResponse(
        job=found.job,
        job_name=found.job_name,
        checkpoint=checkpoint_view_to_wire(found.checkpoint),
        depot=found.depot,
        parts=(
            pb.CheckpointPart(
                rank=each.rank,
                files=each.files,
                bytes=each.bytes,
                tree=each.tree,
                size=each.size,
                ticket=each.ticket,
                store=each.store,
            )
            for each in found.parts
        ),
        following=following,
    )


def checkpoint_parts_from_wire(message: pb.CheckpointPartsResponse) -> CheckpointParts:
    """A page of the parts of a checkpoint; raises WireError."""
    checks.require(message, "checkpoint")
    return CheckpointParts(
        job=checks.identifier(message.job, "CheckpointPartsResponse.job"),
        job_name=checks.label(message.job_name, "CheckpointPartsResponse.job_name"),
        checkpoint=checkpoint_view_from_wire(message.checkpoint),
        depot=checks.plain(message.depot, "CheckpointPartsResponse.depot"),
        parts=tuple(map(_part_from_wire, message.parts)),
    )


def _part_from_wire(message: pb.CheckpointPart) -> CheckpointPartView:
    if message.tree and not is_digest(message.tree):
        raise WireError("CheckpointPart.tree", "is no SHA-256")
    return CheckpointPartView(
        rank=_rank(message.rank, "CheckpointPart.rank"),
        files=checks.between(message.files, 0, MOST_OUTPUTS, "CheckpointPart.files"),
        bytes=checks.between(message.bytes, 0, LARGEST_OUTPUTS, "CheckpointPart.bytes"),
        tree=message.tree,
        size=checks.between(message.size, 0, LARGEST_OUTPUTS, "CheckpointPart.size"),
        ticket=checks.plain(message.ticket, "CheckpointPart.ticket"),
        store=checks.plain(message.store, "CheckpointPart.store"),
    )


def _rank(rank: int, where: str) -> int:
    return checks.between(rank, 0, checks.MAX_SIZE - 1, where)
