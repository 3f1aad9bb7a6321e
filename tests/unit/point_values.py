"""Hypothesis strategies for points as they travel."""

from hypothesis import strategies as st

from muster.domain.telemetry.point import Point, RankPoints
from tests.unit.plain_values import moments

_keys = st.text(min_size=1, max_size=64)
_points = st.builds(
    Point,
    time=moments,
    values=st.dictionaries(_keys, st.floats(allow_nan=False, allow_infinity=False), max_size=5),
    texts=st.dictionaries(_keys, st.text(max_size=20), max_size=5),
    offset=st.integers(0, 2**40),
)
rank_points = st.builds(
    RankPoints,
    rank=st.integers(0, 1000),
    attempt=st.integers(1, 1000),
    points=st.lists(_points, max_size=4).map(tuple),
    all=st.integers(0, 2**40),
)
