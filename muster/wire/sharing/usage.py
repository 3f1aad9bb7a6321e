"""Values of projects.proto: what was used over time."""

from muster.domain.usage import MOST_USAGE_ROWS, UsageBy, UsageReport, UsageRow, UsageWish
from muster.rpc.v1 import projects_pb2 as pb
from muster.wire import checks
from muster.wire.sharing.quotas import amounts_from_wire, amounts_to_wire


def usage_wish_to_wire(wish: UsageWish) -> pb.UsageRequest:
    """Which usage somebody asks for."""
    return pb.UsageRequest(
        by=wish.by,
        since=checks.timestamp(wish.since),
        until=checks.timestamp(wish.until),
        project=wish.project,
        pool=wish.pool,
    )


def usage_wish_from_wire(message: pb.UsageRequest) -> UsageWish:
    """Which usage somebody asks for; raises WireError."""
    return UsageWish(
        by=checks.word(UsageBy, message.by, "UsageRequest.by"),
        since=checks.optional_moment(message, "since"),
        until=checks.optional_moment(message, "until"),
        project=message.project,
        pool=message.pool,
    )


def usage_report_to_wire(report: UsageReport) -> pb.UsageResponse:
    """What was used."""
    return pb.UsageResponse(
        by=report.by,
        since=checks.timestamp(report.since),
        until=checks.timestamp(report.until),
        rows=map(_row_to_wire, report.rows),
        kept_since=checks.timestamp(report.kept_since),
    )


def usage_report_from_wire(message: pb.UsageResponse) -> UsageReport:
    """What was used; raises WireError."""
    if len(message.rows) > MOST_USAGE_ROWS:
        raise checks.WireError("UsageResponse.rows", f"has {len(message.rows)} entries; at most {MOST_USAGE_ROWS}")
    return UsageReport(
        by=checks.word(UsageBy, message.by, "UsageResponse.by"),
        since=checks.optional_moment(message, "since"),
        until=checks.moment(message.until, "UsageResponse.until"),
        rows=tuple(map(_row, message.rows)),
        kept_since=checks.optional_moment(message, "kept_since"),
    )


def _row_to_wire(row: UsageRow) -> pb.UsageRow:
    return pb.UsageRow(
        of=row.of,
        name=row.name,
        project=row.project,
        user=row.user,
        attempts=row.attempts,
        evicted=row.evicted,
        held=amounts_to_wire(row.held),
        lost=row.lost,
        borrowed=row.borrowed,
        busy=row.busy,
        median_wait=checks.duration(row.median_wait),
        long_wait=checks.duration(row.long_wait),
    )


def _row(message: pb.UsageRow) -> UsageRow:
    return UsageRow(
        of=checks.text(message.of, "UsageRow.of"),
        name=checks.text(message.name, "UsageRow.name"),
        project=checks.text(message.project, "UsageRow.project"),
        user=checks.text(message.user, "UsageRow.user"),
        attempts=message.attempts,
        evicted=message.evicted,
        held=amounts_from_wire(message.held),
        lost=message.lost,
        borrowed=message.borrowed,
        busy=message.busy if message.HasField("busy") else None,
        median_wait=checks.optional_span(message, "median_wait"),
        long_wait=checks.optional_span(message, "long_wait"),
    )
