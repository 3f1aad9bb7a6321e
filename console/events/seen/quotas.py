"""Quotas that are reached: a project holds in a pool all that its quota gives it of something; pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from muster.domain.event import FleetEvent, FleetEventKind
from muster.domain.fleet.quota import RESOURCES, UNLIMITED_AMOUNT, UnitKind
from muster.domain.fleet.standing_view import UnitStandingView


class QuotaPlace(NamedTuple):
    """A resource of a project in a pool."""

    project: str
    pool: str
    resource: str


def reached_quotas(units: Iterable[UnitStandingView]) -> Mapping[QuotaPlace, int]:
    """The quotas of which nothing is left, and how large they are."""
    return {
        QuotaPlace(unit.unit.name, pool.pool, resource): quota
        for unit in units
        if unit.unit.kind is UnitKind.PROJECT
        for pool in unit.pools
        for resource, quota, held in zip(RESOURCES, pool.quota, pool.held, strict=True)
        if 0 < quota < UNLIMITED_AMOUNT and held >= quota
    }


class QuotaBook:
    """Which quotas were reached at the last look; what was so at the first one is no news."""

    def __init__(self) -> None:
        self._reached: Mapping[QuotaPlace, int] | None = None

    def note(self, reached: Mapping[QuotaPlace, int], now: datetime) -> list[FleetEvent]:
        """Take in what is reached now; an event for each project that has reached a quota since the look before."""
        before, self._reached = self._reached, reached
        if before is None:
            return []
        new: dict[str, list[str]] = {}
        for place, quota in reached.items():
            if place not in before:
                new.setdefault(place.project, []).append(_text(place, quota))
        return [
            FleetEvent(kind=FleetEventKind.QUOTA_REACHED, at=now, project=project, text="; ".join(texts))
            for project, texts in new.items()
        ]


def _text(place: QuotaPlace, quota: int) -> str:
    match place.resource:
        case "memory":
            amount = f"{quota / 1024:g} GiB of memory"
        case "gpus" | "cpus":
            amount = f"{quota / 1000:g} {place.resource.upper()[:-1]}{'' if quota == 1000 else 's'}"  # noqa: PLR2004 - one whole
        case _:
            amount = f"{quota} of {place.resource}"
    return f"all {amount} of its quota in pool {place.pool} are held"
