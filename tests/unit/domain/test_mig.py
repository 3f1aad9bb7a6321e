"""MIG devices: their profiles, and how much of a GPU each is."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.jobs.placing.mig import KNOWN_PROFILES, MIG_PROFILE, likely_profile, profile_named, thousandths
from tests.builders import gpu, mig_devices


@pytest.mark.parametrize(
    ("profile", "counts"),
    [
        ("1g.10gb", 143),
        ("1g.10gb+me", 143),
        ("2g.20gb", 286),
        ("3g.40gb", 429),
        ("4g.40gb", 571),
        ("7g.80gb", 1000),
        ("1c.3g.40gb", 143),
        ("1g.6gb", 250),
        ("2g.12gb+me", 500),
        ("1c.4g.24gb", 250),
        ("4g.24gb", 1000),
    ],
)
def test_a_device_counts_its_compute_slices_of_those_of_its_gpu(profile: str, counts: int) -> None:
    assert thousandths(profile) == counts


@given(st.sampled_from(KNOWN_PROFILES) | st.from_regex(MIG_PROFILE, fullmatch=True))
def test_no_device_counts_nothing_or_more_than_a_gpu(profile: str) -> None:
    assert 0 < thousandths(profile) <= 1000


@given(st.sampled_from(KNOWN_PROFILES) | st.from_regex(MIG_PROFILE, fullmatch=True))
def test_the_profile_is_read_from_the_name_of_the_device(profile: str) -> None:
    assert profile_named(f"NVIDIA H100 80GB HBM3 MIG {profile}") == profile


@pytest.mark.parametrize("name", ["", "NVIDIA H100", "NVIDIA H100 MIG", "NVIDIA H100 MIG ", "NVIDIA H100 MIG odd"])
def test_a_name_without_a_profile_has_none(name: str) -> None:
    assert profile_named(name) is None


def test_every_known_profile_is_written_as_profiles_are() -> None:
    assert [each for each in KNOWN_PROFILES if not re.fullmatch(MIG_PROFILE, each)] == []
    assert len(set(KNOWN_PROFILES)) == len(KNOWN_PROFILES)


@pytest.mark.parametrize(
    ("written", "meant"),
    [("1g.10g", "1g.10gb"), ("1g10gb", "1g.10gb"), ("3G.40GB", "3g.40gb"), ("1g.17gb", "1g.18gb"), ("nothing", None)],
)
def test_the_nearest_profile_is_the_one_that_was_meant(written: str, meant: str | None) -> None:
    assert likely_profile(written) == meant


def test_a_gpu_counts_as_a_whole_and_a_mig_device_as_its_part() -> None:
    assert gpu("a", 0).thousandths == 1000
    assert [each.thousandths for each in mig_devices("a", "1g.10gb", "3g.40gb")] == [143, 429]
