"""Users of a node by number."""

import re
from dataclasses import dataclass

_FORM = re.compile(r"([0-9]{1,10})(?::([0-9]{1,10}))?")
_LAST = 2**32 - 2
"""The number after it means: no user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobUser:
    """A user by number, with the one group that it is in."""

    uid: int
    gid: int

    def __str__(self) -> str:
        return f"{self.uid}:{self.gid}"

    @property
    def is_root(self) -> bool:
        """Whether it is root, or in root's group."""
        return 0 in {self.uid, self.gid}


NOBODY = JobUser(uid=65534, gid=65534)
"""Owns nothing anywhere; what agents take where the operator names nobody else."""


def numeric(text: str) -> JobUser | None:
    """`uid[:gid]`; without a group it is in the one of the same number. None: that is written otherwise."""
    written = _FORM.fullmatch(text)
    if written is None:
        return None
    uid, gid = int(written[1]), int(written[2] or written[1])
    return JobUser(uid=uid, gid=gid) if max(uid, gid) <= _LAST else None
