"""MIG devices: how their profiles are written, and how much of a GPU each is."""

import re
from functools import lru_cache

from muster.domain.quoting import nearest

MIG_PROFILE = r"([1-7]c\.)?[1-8]g\.[1-9][0-9]{0,2}gb([+-][a-z]+(\.[a-z]+)?){0,2}"
"""The pattern of profiles: `1g.10gb` is a compute slice with 10 GB, `1c.3g.40gb` a slice of an instance of three."""
KNOWN_PROFILES = (
    *("1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"),  # A100 40 GB
    *("1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb"),  # A100 and H100 80 GB
    *("1g.6gb", "1g.6gb+me", "2g.12gb", "2g.12gb+me", "4g.24gb"),  # A30
    *("1g.12gb", "1g.12gb+me", "1g.24gb", "2g.24gb", "3g.48gb", "4g.48gb", "7g.96gb"),  # H100 96 GB, GH200
    *("3g.47gb", "4g.47gb", "7g.94gb"),  # H100 94 GB
    *("1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb"),  # H200
    *("1g.23gb", "1g.23gb+me", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb"),  # B200
)
"""Names by NVIDIA, to tell what was probably meant; others are taken as well, if a node has them."""
SLICES = 7
"""The compute slices of most GPUs."""
FEW_SLICES = 4
"""The compute slices of an A30."""
OF_FEW_SLICES = frozenset({"1g.6gb", "2g.12gb", "4g.24gb"})
"""Profiles of an A30; no other GPU has any of these."""


def profile_named(model: str) -> str | None:
    """The profile that NVML writes at the end of the name of a MIG device; None: there is none."""
    _, found, profile = model.rpartition(" MIG ")
    return profile if found and re.fullmatch(MIG_PROFILE, profile) else None


@lru_cache(maxsize=1000)
def thousandths(profile: str) -> int:
    """How much of a GPU a device is, by its compute slices: 143 for one of seven."""
    parts = re.split(r"[+-]", profile, maxsplit=1)[0]
    of = FEW_SLICES if parts.rpartition("c.")[2] in OF_FEW_SLICES else SLICES
    return min(1000, (2000 * int(parts[0]) + of) // (2 * of))


def likely_profile(text: str) -> str | None:
    """The profile that was probably meant."""
    return nearest(text.strip().lower(), KNOWN_PROFILES)
