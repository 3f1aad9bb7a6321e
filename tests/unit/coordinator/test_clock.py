"""Whoever sets the machine's clock does not end a lease."""

from datetime import UTC, datetime, timedelta

from coordinator.clock import SteadyClock, boot_time, wall_time

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class Machine:
    """A machine with a clock that can be set, and a count that cannot."""

    def __init__(self) -> None:
        self.shown = NOON
        self.counted = 1000.0

    def wall(self) -> datetime:
        return self.shown

    def boot(self) -> float:
        return self.counted

    def run(self, seconds: float) -> None:
        self.shown += timedelta(seconds=seconds)
        self.counted += seconds


def test_it_begins_with_the_time_that_the_machine_shows_and_goes_on_with_it() -> None:
    machine = Machine()
    clock = SteadyClock(machine.wall, machine.boot)
    assert clock.now() == NOON
    machine.run(90.25)

    assert clock.now() == NOON + timedelta(seconds=90.25)


def test_it_does_not_follow_when_the_machine_s_clock_is_set() -> None:
    machine = Machine()
    clock = SteadyClock(machine.wall, machine.boot)
    machine.shown += timedelta(days=400)
    machine.run(10)
    machine.shown -= timedelta(days=800)
    machine.run(10)

    assert clock.now() == NOON + timedelta(seconds=20)


def test_by_default_it_is_that_of_this_machine() -> None:
    before, counted = wall_time(), boot_time()
    shown = SteadyClock().now()
    after, still = wall_time(), boot_time()

    # The two readings of the machine are not of the same moment, so each counts for itself.
    assert shown - before <= after - before + timedelta(seconds=still - counted)
    assert shown >= before
