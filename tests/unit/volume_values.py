"""Hypothesis strategies for volumes as they travel."""

from hypothesis import strategies as st

from muster.domain.data.volume import Volume, VolumeKeep

_sizes = st.none() | st.integers(0, 2**63 - 1)
volumes = st.builds(
    Volume,
    name=st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True),
    path=st.none() | st.from_regex(r"/[a-z]{1,8}", fullmatch=True),
    size=_sizes,
    tmpfs=_sizes,
    keep=st.sampled_from(VolumeKeep),
)
