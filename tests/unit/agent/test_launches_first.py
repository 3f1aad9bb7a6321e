"""Executions that are just being started come before the bytes of attachments."""

import pytest

from agent.attach.relayed.launches import LARGE_PIECE, LAUNCH_LASTS, PIECE_PAUSE, LaunchesFirst


class Clock:
    """Shows what a test sets."""

    def __init__(self) -> None:
        self.shown = 100.0

    def __call__(self) -> float:
        return self.shown


@pytest.mark.parametrize(
    ("later", "size", "pause"),
    [
        (0.0, LARGE_PIECE, PIECE_PAUSE),
        (LAUNCH_LASTS / 2, 16 * LARGE_PIECE, PIECE_PAUSE),
        (0.0, LARGE_PIECE - 1, 0.0),
        (LAUNCH_LASTS, LARGE_PIECE, 0.0),
    ],
)
def test_large_pieces_wait_for_as_long_as_a_launch_lasts(later: float, size: int, pause: float) -> None:
    clock = Clock()
    launches = LaunchesFirst(clock)
    launches.note()
    clock.shown += later
    assert launches.pause(size) == pause


def test_nothing_waits_where_nothing_is_started() -> None:
    assert LaunchesFirst(Clock()).pause(LARGE_PIECE) == 0.0


def test_each_step_of_a_launch_makes_it_last() -> None:
    clock = Clock()
    launches = LaunchesFirst(clock)
    launches.note()
    clock.shown += LAUNCH_LASTS
    launches.note()
    assert launches.pause(LARGE_PIECE) == PIECE_PAUSE
