"""Quotas as people write them: pairs for `muster quota set`, and the file for `muster quota apply`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from muster.domain.errors import InvalidJobError
from muster.domain.fleet.quota import (
    BYTES_PER_MIB,
    MILLIS_PER_GPU,
    NO_QUOTA_TERMS,
    RESOURCES,
    UNLIMITED_AMOUNT,
    QuotaTerms,
    QuotaUnit,
    UnitKind,
    UnitTerms,
)
from muster.domain.jobs.job_class import JobClass
from muster.jobfile.errors import FieldError
from muster.jobfile.quantity import parse_cpus, parse_duration, parse_memory

UNLIMITED_WORD = "unlimited"
UNSET_WORD = "none"
"""The value that takes back what was said."""


def changed_terms(terms: QuotaTerms, pairs: Sequence[str]) -> QuotaTerms:
    """Terms with what pairs like `gpus=16`, `limit.gpus=32`, `weight=2` say in place of what they said of it.

    `none` takes back what was said. Raises InvalidJobError for a pair that means nothing.
    """
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise InvalidJobError(f"{pair!r} is not KEY=VALUE, like gpus=16")
        terms = _said(terms, _full(key.strip()), value.strip(), pair)
    return terms


def units_of(document: object, known: Sequence[QuotaUnit]) -> tuple[QuotaUnit, ...]:
    """The units of a file, which says all of what these may have; raises InvalidJobError with the place of a fault."""
    whole = _map(document, "the file")
    _only(whole, {"departments", "projects"}, "the file")
    units = [
        _unit(name, UnitKind.DEPARTMENT, _map(said or {}, f"departments.{name}"), f"departments.{name}")
        for name, said in _map(whole.get("departments") or {}, "departments").items()
    ]
    departments = {unit.name: unit.department for unit in known if unit.kind is UnitKind.PROJECT}
    for name, said in _map(whole.get("projects") or {}, "projects").items():
        where = f"projects.{name}"
        keys = dict(_map(said or {}, where))
        department = keys.pop("department", departments.get(name, ""))
        unit = _unit(name, UnitKind.PROJECT, keys, where)
        units.append(replace(unit, department=str(department or "")))
    return tuple(units)


def _unit(name: str, kind: UnitKind, said: Mapping[str, Any], where: str) -> QuotaUnit:
    keys = dict(said)
    pools = _map(keys.pop("pools", None) or {}, f"{where}.pools")
    terms = UnitTerms(
        everywhere=_terms(keys, where),
        pools={pool: _terms(_map(of, f"{where}.pools.{pool}"), f"{where}.pools.{pool}") for pool, of in pools.items()},
    )
    for fault in terms.faults():
        raise InvalidJobError(f"{where}: {fault}")
    return QuotaUnit(name=name, kind=kind, terms=terms)


def _terms(said: Mapping[str, Any], where: str) -> QuotaTerms:
    terms = NO_QUOTA_TERMS
    for key, value in _flat(said, where):
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        terms = _said(terms, key, text, f"{where}.{key}")
    return terms


def _flat(said: Mapping[str, Any], where: str) -> Iterator[tuple[str, object]]:
    for key, value in said.items():
        if key in _BOUNDS and isinstance(value, Mapping):
            for resource, amount in value.items():
                yield f"{key}.{resource}", amount
        elif key in _BOUNDS:
            raise InvalidJobError(f"{where}.{key} must be a map, like {{gpus: 16}}")
        else:
            yield key, value


def _full(key: str) -> str:
    """The key in full: `gpus` is the quota, and `limit` the limit of GPUs."""
    if key in RESOURCES:
        return f"quota.{key}"
    return "limit.gpus" if key == "limit" else key


def _said(terms: QuotaTerms, key: str, value: str, where: str) -> QuotaTerms:
    bounds, _, resource = key.partition(".")
    try:
        if bounds in _BOUNDS and resource in _AMOUNTS:
            amount = None if value == UNSET_WORD else _amount(resource, value)
            return replace(terms, **{bounds: getattr(terms, bounds)._replace(**{resource: amount})})
        if key in _VALUES:
            field = "job_class" if key == "class" else key
            said: dict[str, Any] = {field: None if value == UNSET_WORD else _VALUES[key](value)}
            return replace(terms, **said)
    except (FieldError, ValueError) as error:
        raise InvalidJobError(f"{where}: {error}") from None
    known = [*(f"{name}.{resource}" for name in _BOUNDS for resource in RESOURCES), *_VALUES]
    raise InvalidJobError(f"{where}: there is no key {key!r}; there are {', '.join(known)}")


def _amount(resource: str, value: str) -> int:
    return UNLIMITED_AMOUNT if value == UNLIMITED_WORD else 0 if value == "0" else _AMOUNTS[resource](value)


def _job_class(value: str) -> JobClass:
    if value not in set(JobClass):
        raise ValueError(f"must be {', '.join(JobClass)}, not {value!r}")
    return JobClass(value)


def _words(value: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in value.split(",")))


def _whole(value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"must be a whole number, not {value!r}") from None


def _mib(value: str) -> int:
    size, rest = divmod(parse_memory(value), BYTES_PER_MIB)
    if rest:
        raise ValueError(f"must be whole mebibytes, not {value!r}")
    return size


def _or_no_time(value: str) -> timedelta:
    """A duration, or none at all: not safe for any time, never stopped as unused."""
    return timedelta() if value in NO_TIME else parse_duration(value)


NO_TIME = ("0", "0s")
"""Ways to say that a term asks for no time."""
_BOUNDS = ("quota", "limit")
_AMOUNTS: Mapping[str, Callable[[str], int]] = {
    "gpus": lambda value: _whole(value) * MILLIS_PER_GPU,
    "cpus": parse_cpus,
    "memory": _mib,
}
_VALUES: Mapping[str, Callable[[str], object]] = {
    "weight": _whole,
    "rank": _whole,
    "max_running": _whole,
    "max_queued": _whole,
    "max_running_per_user": _whole,
    "class": _job_class,
    "min_runtime": _or_no_time,
    "min_runtime_within": _or_no_time,
    "grace_max": parse_duration,
    "idle": _or_no_time,
    "types": _words,
}


def _map(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise InvalidJobError(f"{where} must be a map of names")
    return value


def _only(said: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in said:
        if key not in known:
            raise InvalidJobError(f"{where} has the unknown key {key!r}; there are {', '.join(sorted(known))}")
