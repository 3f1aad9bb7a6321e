"""When a delivery that has failed is tried again; pure."""

RETRY_AFTER = (5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0, 43200.0)
"""Seconds between the tries of one delivery; it is given up after the last, 28 hours in all."""
JITTER = 0.2
"""The part of a pause by which it is longer at random, so that not all come at once."""


BROKER_AGAIN_AFTER = (30.0,) * 3_360
"""Seconds between the tries of one delivery to a broker, which is away as a whole or not at all; 28 hours in all."""


def pause_after(tries: int, chance: float, pauses: tuple[float, ...] = RETRY_AFTER) -> float | None:
    """Seconds until the next try, after so many; `chance` is between 0 and 1. None: it is given up."""
    if tries > len(pauses):
        return None
    return pauses[tries - 1] * (1 + JITTER * chance)
