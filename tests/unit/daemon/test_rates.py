"""How fast somebody may go, by times that are told."""

from hypothesis import given
from hypothesis import strategies as st

from muster.daemon.rates import Buckets, Rate

PLAIN = Rate(burst=3, per_second=2)


def test_so_many_go_at_once_and_then_one_after_the_other() -> None:
    buckets = Buckets[str](PLAIN)
    assert [buckets.take("a", 10.0) for _ in range(5)] == [0.0, 0.0, 0.0, 0.5, 0.5]
    assert [buckets.take("a", 10.5), buckets.take("a", 10.5)] == [0.0, 0.5]


def test_who_is_refused_has_taken_nothing() -> None:
    buckets = Buckets[str](PLAIN)
    for _ in range(100):
        buckets.take("a", 0.0)
    assert buckets.take("a", 0.5) == 0.0


def test_what_is_given_back_can_be_taken_again() -> None:
    buckets = Buckets[str](PLAIN)
    for _ in range(3):
        buckets.take("a", 0.0)
    buckets.give_back("a")
    buckets.give_back("b")
    assert [buckets.take("a", 0.0), buckets.take("a", 0.0)] == [0.0, 0.5]


def test_one_key_does_not_take_from_another() -> None:
    buckets = Buckets[str](PLAIN)
    for _ in range(4):
        buckets.take("a", 0.0)
    assert buckets.take("b", 0.0) == 0.0


def test_a_bucket_that_has_been_left_alone_is_full_and_never_fuller() -> None:
    buckets = Buckets[str](PLAIN)
    for _ in range(3):
        buckets.take("a", 0.0)
    assert [buckets.take("a", 1e6) for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]


def test_only_so_many_keys_are_remembered_and_the_quietest_is_forgotten_first() -> None:
    buckets = Buckets[int](Rate(burst=1, per_second=1), keys=3)
    for key in (1, 2, 3):
        buckets.take(key, 0.0)
    buckets.take(1, 0.0)
    for key in range(4, 1000):
        buckets.take(key, 0.0)
        assert buckets.take(1, 0.0) == 1.0
    assert len(buckets) == 3
    assert buckets.take(2, 0.0) == 0.0


@given(st.integers(1, 50), st.floats(0.1, 1000), st.lists(st.floats(0, 10), max_size=300))
def test_nobody_ever_gets_more_than_the_burst_and_the_rate(burst: int, rate: float, pauses: list[float]) -> None:
    buckets, now, taken = Buckets[str](Rate(burst=burst, per_second=rate)), 0.0, 0
    for pause in pauses:
        now += pause
        taken += buckets.take("a", now) == 0.0
        assert taken <= burst + now * rate + 1e-3


@given(st.integers(1, 50), st.floats(0.1, 1000), st.integers(1, 100))
def test_who_waits_as_long_as_he_was_told_gets_through(burst: int, rate: float, calls: int) -> None:
    buckets, now = Buckets[str](Rate(burst=burst, per_second=rate)), 1e6
    for _ in range(calls):
        wait = buckets.take("a", now)
        now += wait
        assert wait == 0.0 or buckets.take("a", now + 1e-9) == 0.0
