"""Which kept volumes go where there are too many or too much of them; decided from values alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from muster.domain.data.volume import VolumeId


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldVolume:
    """A kept volume as its node sees it."""

    id: VolumeId
    bytes: int
    """Bytes that lay in it when it was looked at last."""
    used_at: float
    """When an execution last began or ended to use it, in seconds since 1970."""
    promised: int | None = None
    """Bytes that may lie in it, by the largest of the executions that use it; None: none does."""

    @property
    def taken(self) -> int:
        """Bytes of the disk that it counts for."""
        return max(self.bytes, self.promised or 0)


def surplus(volumes: Sequence[HeldVolume], limit: int) -> int:
    """Bytes by which kept volumes are more than may be; what is in use counts as what was promised."""
    return max(0, sum(volume.taken for volume in volumes) - limit)


def longest_unused(volumes: Sequence[HeldVolume], too_much: int, too_many: int) -> Sequence[HeldVolume] | None:
    """The volumes that go, oldest use first, until there are so many bytes and so many volumes less.

    None that is in use goes. None: all others together would not do, so none goes.
    """
    going: list[HeldVolume] = []
    freed = 0
    unused = (volume for volume in volumes if volume.promised is None)
    for volume in sorted(unused, key=lambda volume: (volume.used_at, volume.id)):
        if freed >= too_much and len(going) >= too_many:
            break
        going.append(volume)
        freed += volume.bytes
    return going if freed >= too_much and len(going) >= too_many else None
