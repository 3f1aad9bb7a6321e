"""Figures of a coordinator on the wire."""

from muster.domain.telemetry.coordinator_figures import COMMIT_BOUNDS, CoordinatorFigures
from muster.rpc.v1 import fleet_pb2 as pb
from muster.wire import checks
from muster.wire.checks import WireError


def coordinator_figures_to_wire(figures: CoordinatorFigures) -> pb.CoordinatorFigures:
    """All of them."""
    return pb.CoordinatorFigures(
        began=checks.timestamp(figures.began),
        turns=figures.turns,
        commits=figures.commits,
        commit_seconds=figures.commit_seconds,
        waiting=figures.waiting,
        streams=figures.streams,
        memory=figures.memory,
        cpu_seconds=figures.cpu_seconds,
    )


def coordinator_figures_from_wire(message: pb.CoordinatorFigures) -> CoordinatorFigures:
    """All of them; raises WireError."""
    checks.require(message, "began")
    if len(message.commits) != len(COMMIT_BOUNDS) + 1:
        raise WireError(
            "CoordinatorFigures.commits", f"has {len(message.commits)} counts, not {len(COMMIT_BOUNDS) + 1}"
        )
    return CoordinatorFigures(
        began=checks.moment(message.began, "CoordinatorFigures.began"),
        turns=_count(message.turns, "turns"),
        commits=tuple(_count(count, "commits") for count in message.commits),
        commit_seconds=_seconds(message.commit_seconds, "commit_seconds"),
        waiting=_count(message.waiting, "waiting"),
        streams=_count(message.streams, "streams"),
        memory=_count(message.memory, "memory"),
        cpu_seconds=_seconds(message.cpu_seconds, "cpu_seconds"),
    )


def _count(value: int, field: str) -> int:
    return checks.between(value, 0, checks.MAX_BYTES, f"CoordinatorFigures.{field}")


def _seconds(value: float, field: str) -> float:
    if not 0 <= value < checks.MAX_BYTES:  # not a number is neither
        raise WireError(f"CoordinatorFigures.{field}", f"is {value:g}, which is no time that passes")
    return value
