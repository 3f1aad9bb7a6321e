"""What a change of quotas changes, told line by line: for whoever is about to make it, and for the audit log."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import timedelta

from muster.domain.fleet.quota import (
    NO_QUOTA_TERMS,
    RESOURCES,
    AmountBounds,
    QuotaTerms,
    QuotaUnit,
    UnitChange,
    amount_text,
)
from muster.domain.quantity import format_duration


def planned(known: Sequence[QuotaUnit], wanted: Sequence[QuotaUnit]) -> tuple[UnitChange, ...]:
    """What is to be changed so that these units have these terms; the others stay as they are."""
    there = {unit.name: unit for unit in known}
    changes = (UnitChange(before=there.get(unit.name), after=unit) for unit in wanted)
    return tuple(change for change in changes if change.before != change.after)


def told(change: UnitChange) -> Iterator[str]:
    """What one change changes, a line each."""
    before, after = change.before, change.after
    unit = after or before
    assert unit is not None, "a change is of something"
    if before is None:
        yield f"{unit.kind} {unit.name}: new"
    if after is None:
        yield f"{unit.kind} {unit.name}: removed"
        return
    was = before or QuotaUnit(name=after.name, kind=after.kind)
    if was.department != after.department:
        yield f"{unit.name}: department {was.department or 'none'} -> {after.department or 'none'}"
    for pool in ("", *sorted({*was.terms.pools, *after.terms.pools})):
        old, new = said(was.terms.of_pool(pool)), said(after.terms.of_pool(pool))
        where = f" in pool {pool}" if pool else ""
        for key in dict.fromkeys((*old, *new)):
            if old.get(key) != new.get(key):
                yield f"{unit.name}: {key}{where} {old.get(key, 'not set')} -> {new.get(key, 'not set')}"


def said(terms: QuotaTerms) -> Mapping[str, str]:
    """What terms say, by key, as people read it."""
    found: dict[str, str] = {}
    for each in fields(terms):
        value = getattr(terms, each.name)
        if isinstance(value, AmountBounds):
            for resource, bound in zip(RESOURCES, value, strict=True):
                if bound is not None:
                    found[f"{each.name}.{resource}"] = amount_text(resource, bound)
        elif value is not None:
            key = each.name.removeprefix("job_")
            found[key] = _text(value)
    return found


def _text(value: object) -> str:
    if isinstance(value, timedelta):
        return format_duration(value)
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def says_nothing(unit: QuotaUnit) -> bool:
    """Whether nothing is said of what a unit may have."""
    return unit.terms.everywhere == NO_QUOTA_TERMS and not unit.terms.pools
