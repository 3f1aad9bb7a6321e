"""How far a transfer has come, told as its bytes arrive."""

from collections.abc import Callable


def adding_up(total: int, told: Callable[[int, int], None] | None) -> Callable[[int], None]:
    """Hears how many bytes have arrived each time, and tells how many of how many are there; None: tells nobody."""
    done = 0

    def arrived(count: int) -> None:
        nonlocal done
        done += count
        if told is not None:
            told(min(done, total), total)

    return arrived
