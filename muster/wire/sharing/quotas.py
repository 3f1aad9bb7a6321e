"""Quotas: what departments and projects may have and hold, and the queue."""

from collections.abc import Sequence
from typing import Any

from muster.domain.fleet.quota import (
    MOST_POOLS,
    RESOURCES,
    UNLIMITED_AMOUNT,
    AmountBounds,
    Amounts,
    QuotaTerms,
    QuotaUnit,
    UnitChange,
    UnitKind,
    UnitTerms,
)
from muster.domain.fleet.standing_view import PoolStandingView, QueueLine, QueuePage, UnitStandingView
from muster.domain.ids import JobId
from muster.domain.jobs.job_class import JobClass
from muster.rpc.v1 import projects_pb2 as pb
from muster.wire import checks

_NUMBERS = ("weight", "rank", "max_running", "max_queued", "max_running_per_user")
_SPANS = ("min_runtime", "min_runtime_within", "grace_max", "idle")


def unit_change_to_wire(change: UnitChange) -> pb.UnitChange:
    """A change as a message."""
    return pb.UnitChange(before=_unit_to_wire(change.before), after=_unit_to_wire(change.after))


def changes_from_wire(messages: Sequence[pb.UnitChange]) -> tuple[UnitChange, ...]:
    """Changes that somebody asks for; raises WireError."""
    checks.few(messages, "SetQuotasRequest.changes")
    return tuple(map(unit_change_from_wire, messages))


def unit_change_from_wire(message: pb.UnitChange) -> UnitChange:
    """A change that somebody asks for; raises WireError."""
    before = _unit_from_wire(message.before) if message.HasField("before") else None
    after = _unit_from_wire(message.after) if message.HasField("after") else None
    if before is None and after is None:
        raise checks.WireError("UnitChange.after", "is missing, as is before")
    if before is not None and after is not None and before.name != after.name:
        raise checks.WireError("UnitChange.after", "is another unit than before")
    return UnitChange(before=before, after=after)


def unit_standing_to_wire(view: UnitStandingView) -> pb.UnitStanding:
    """A unit with what it has, as a message."""
    return pb.UnitStanding(
        unit=_unit_to_wire(view.unit),
        running=view.running,
        queued=view.queued,
        pools=[
            pb.PoolStanding(
                pool=each.pool,
                quota=amounts_to_wire(each.quota),
                limit=amounts_to_wire(each.limit),
                weight=each.weight,
                rank=each.rank,
                share=amounts_to_wire(each.share),
                held=amounts_to_wire(each.held),
                guaranteed=amounts_to_wire(each.guaranteed),
                waiting=amounts_to_wire(each.waiting),
            )
            for each in view.pools
        ],
    )


def unit_standing_from_wire(message: pb.UnitStanding) -> UnitStandingView:
    """A unit with what it has; raises WireError."""
    checks.few(message.pools, "UnitStanding.pools")
    return UnitStandingView(
        unit=_unit_from_wire(message.unit),
        running=message.running,
        queued=message.queued,
        pools=tuple(
            PoolStandingView(
                pool=_pool(each.pool, "PoolStanding.pool"),
                quota=amounts_from_wire(each.quota),
                limit=amounts_from_wire(each.limit),
                weight=each.weight,
                rank=each.rank,
                share=amounts_from_wire(each.share),
                held=amounts_from_wire(each.held),
                guaranteed=amounts_from_wire(each.guaranteed),
                waiting=amounts_from_wire(each.waiting),
            )
            for each in message.pools
        ),
    )


def queue_page_to_wire(page: QueuePage) -> pb.QueueResponse:
    """A part of the queue as a message."""
    return pb.QueueResponse(
        lines=[
            pb.QueueLine(
                position=line.position,
                job=line.job,
                name=line.name,
                project=line.project,
                owner=line.owner,
                pool=line.pool,
                job_class=line.job_class,
                priority=line.priority,
                tier=line.tier,
                size=amounts_to_wire(line.size),
                since=checks.timestamp(line.since),
                reason=line.reason,
            )
            for line in page.lines
        ],
        next_page=page.next_page,
    )


def queue_page_from_wire(message: pb.QueueResponse) -> QueuePage:
    """A part of the queue; raises WireError."""
    return QueuePage(
        lines=tuple(
            QueueLine(
                position=line.position,
                job=JobId(line.job),
                name=checks.text(line.name, "QueueLine.name"),
                project=checks.text(line.project, "QueueLine.project"),
                owner=checks.text(line.owner, "QueueLine.owner"),
                pool=checks.text(line.pool, "QueueLine.pool"),
                job_class=checks.word(JobClass, line.job_class, "QueueLine.job_class"),
                priority=line.priority,
                tier=checks.text(line.tier, "QueueLine.tier"),
                size=amounts_from_wire(line.size),
                since=checks.moment(line.since, "QueueLine.since"),
                reason=checks.text(line.reason, "QueueLine.reason"),
            )
            for line in message.lines
        ),
        next_page=message.next_page,
    )


def _unit_to_wire(unit: QuotaUnit | None) -> pb.QuotaUnit | None:
    if unit is None:
        return None
    return pb.QuotaUnit(name=unit.name, kind=unit.kind, department=unit.department, terms=terms_to_wire(unit.terms))


def _unit_from_wire(message: pb.QuotaUnit) -> QuotaUnit:
    return QuotaUnit(
        name=checks.label(message.name, "QuotaUnit.name"),
        kind=checks.word(UnitKind, message.kind, "QuotaUnit.kind"),
        department=checks.label(message.department, "QuotaUnit.department") if message.department else "",
        terms=terms_from_wire(message.terms),
    )


def terms_to_wire(terms: UnitTerms) -> pb.UnitTerms:
    """What a unit may have, as a message."""
    pools = {pool: _terms_to_wire(each) for pool, each in terms.pools.items()}
    return pb.UnitTerms(everywhere=_terms_to_wire(terms.everywhere), pools=pools)


def terms_from_wire(message: pb.UnitTerms) -> UnitTerms:
    """What a unit may have; raises WireError."""
    if len(message.pools) > MOST_POOLS:
        raise checks.WireError("UnitTerms.pools", f"has {len(message.pools)} entries; at most {MOST_POOLS} are taken")
    return UnitTerms(
        everywhere=_terms_from_wire(message.everywhere),
        pools={_pool(pool, "UnitTerms.pools"): _terms_from_wire(each) for pool, each in message.pools.items()},
    )


def _pool(name: str, where: str) -> str:
    return checks.label(name, where)


def _terms_to_wire(terms: QuotaTerms) -> pb.QuotaTerms:
    message = pb.QuotaTerms(quota=_bounds_to_wire(terms.quota), limit=_bounds_to_wire(terms.limit))
    for name in _NUMBERS:
        if (value := getattr(terms, name)) is not None:
            setattr(message, name, value)
    for name in _SPANS:
        if (span := getattr(terms, name)) is not None:
            getattr(message, name).CopyFrom(checks.duration(span))
    message.job_class = terms.job_class or ""
    message.types.extend(terms.types or ())
    return message


def _terms_from_wire(message: pb.QuotaTerms) -> QuotaTerms:
    told = {field.name for field, _ in message.ListFields()}
    said: dict[str, Any] = {name: getattr(message, name) for name in _NUMBERS if name in told}
    said |= {name: checks.span(getattr(message, name), f"QuotaTerms.{name}") for name in _SPANS if name in told}
    if message.job_class:
        said["job_class"] = checks.word(JobClass, message.job_class, "QuotaTerms.job_class")
    if message.types:
        checks.few(message.types, "QuotaTerms.types")
        said["types"] = tuple(checks.text(each, "QuotaTerms.types") for each in message.types)
    return QuotaTerms(quota=_bounds_from_wire(message.quota), limit=_bounds_from_wire(message.limit), **said)


def _bounds_to_wire(bounds: AmountBounds) -> pb.AmountBounds:
    return pb.AmountBounds(gpus=bounds.gpus, cpus=bounds.cpus, memory=bounds.memory)


def _bounds_from_wire(message: pb.AmountBounds) -> AmountBounds:
    told = {field.name for field, _ in message.ListFields()}
    return AmountBounds(*(_amount(getattr(message, name)) if name in told else None for name in RESOURCES))


def amounts_to_wire(amounts: Amounts) -> pb.Amounts:
    """Amounts as a message."""
    return pb.Amounts(gpus=amounts.gpus, cpus=amounts.cpus, memory=amounts.memory)


def amounts_from_wire(message: pb.Amounts) -> Amounts:
    """Amounts that somebody tells; raises WireError."""
    return Amounts(*(_amount(getattr(message, name)) for name in RESOURCES))


def _amount(value: int) -> int:
    return checks.between(value, 0, UNLIMITED_AMOUNT, "an amount")
