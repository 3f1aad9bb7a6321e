"""How fast the bytes of one account go through a relay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.relay.pace import BURST, RelayPace

RATE = 1000


def test_without_a_rate_nobody_waits_and_nothing_is_kept() -> None:
    pace = RelayPace()
    assert pace.moved("ada", 10**12, 0.0) == 0
    assert len(pace) == 0


def test_an_account_that_has_rested_moves_a_burst_at_once_and_waits_then() -> None:
    pace = RelayPace(RATE)
    assert pace.moved("ada", int(BURST * RATE), 5.0) == 0
    assert pace.moved("ada", RATE // 2, 5.0) == pytest.approx(0.5)
    assert pace.moved("ada", 0, 5.5) == 0


def test_an_account_does_not_wait_for_what_another_has_moved() -> None:
    pace = RelayPace(RATE)
    pace.moved("ada", 10**6, 0.0)
    assert pace.moved("ben", 1, 0.0) == 0


def test_who_has_rested_is_forgotten() -> None:
    pace = RelayPace(RATE)
    pace.moved("ada", 2 * RATE, 0.0)
    pace.moved("ben", RATE, 0.0)
    pace.forget(1.0)
    assert len(pace) == 1
    pace.forget(2.0)
    assert len(pace) == 0


@given(st.lists(st.tuples(st.integers(0, 5000), st.floats(0, 3)), min_size=1), st.booleans())
def test_who_waits_as_told_never_moves_more_than_the_rate_and_a_burst(
    moves: list[tuple[int, float]], forgets: bool
) -> None:
    pace, now, total = RelayPace(RATE), 100.0, 0
    for size, pause in moves:
        total += size
        now += pace.moved("ada", size, now)
        if forgets:
            pace.forget(now)
        assert total <= RATE * (now - 100.0 + BURST) + 1e-6 * total
        now += pause
