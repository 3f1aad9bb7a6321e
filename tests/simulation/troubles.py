"""What goes wrong on nodes while executions are prepared, started and ended."""

from dataclasses import dataclass


@dataclass(slots=True, kw_only=True)
class Troubles:
    """How often which action goes wrong, and how slow the runtime is."""

    prepare: float = 0.0
    arm: float = 0.0
    start: float = 0.0
    late_start: float = 0.0
    """A start that takes seconds, while others of its gang run already."""
    hang: float = 0.0
    """A preparation that ends only when it is interrupted."""
    slow: float = 0.0
    """An action that takes many times as long."""
    stop: float = 0.0
    """An order to stop that must be repeated for a while."""
    exit: float = 0.0
    """An end of user code of which the runtime cannot tell the exit code."""
