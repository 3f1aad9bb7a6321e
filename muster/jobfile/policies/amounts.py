"""Amounts of job files as numbers, so that they can be compared."""

from muster.jobfile.errors import FieldError
from muster.jobfile.quantity import parse_cpus, parse_duration, parse_memory

_SIZES = frozenset({"memory", "shm", "disk", "gpu_memory", "memory_limit", "size", "tmpfs", "limit"})
_CPUS = frozenset({"cpus", "cpu_limit"})
_SPANS = frozenset({"delete_after", "backoff", "settle", "after"})
_NUMBERS = frozenset({"restarts.limit", "checkpoint.keep"})
_SPAN_PATHS = ("timeouts.", "outputs.keep")


def amount(path: str, value: object) -> float | None:
    """The value under a key as a number: bytes, seconds or just that number; None where it is no amount."""
    key = path.rpartition(".")[2]
    try:
        if path.endswith(tuple(_NUMBERS)):
            return _number(value)
        if path.startswith(_SPAN_PATHS) or key in _SPANS:
            return parse_duration(_written(value)).total_seconds()
        if key in _CPUS:
            return parse_cpus(_written(value)) / 1000
        if key in _SIZES:
            return float(parse_memory(_written(value)))
        return _number(value)
    except (FieldError, ValueError):
        return None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    number = float(value)
    return number if abs(number) < float("inf") else None  # what is no number is not below anything either


def _written(value: object) -> str:
    if not isinstance(value, (int, float, str)):
        raise ValueError(str(value))  # noqa: TRY004 - it is the value of a file that is wrong
    return str(value)
