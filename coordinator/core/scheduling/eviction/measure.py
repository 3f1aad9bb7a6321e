"""What an eviction costs: the set of victims with the least measure is taken."""

from collections.abc import Sequence
from typing import NamedTuple

from coordinator.core.scheduling.eviction.entitlement import inside, side_of
from coordinator.core.scheduling.eviction.gangs import RoomSeeker, RunningGang
from muster.domain.fleet.quota import MILLIS_PER_GPU

START_SECONDS = 60
"""What it takes to stop a gang and start it again, in seconds of its work."""
CPUS_PER_GPU = 8
"""How many CPUs count as much as a GPU, where there are none."""


class EvictionMeasure(NamedTuple):
    """Compared in this order."""

    below_quota: int
    """What units of victims would lack of what they are promised."""
    below_share: int
    """What they would lack of what they should have now."""
    rank: int
    """The highest rank of these units."""
    level: int
    """The highest level of a victim: inflated priorities are worth nothing."""
    lost: int
    """Work that is lost."""
    number: int
    newest: tuple[int, ...]
    """The newest victims first."""


def measure(seeker: RoomSeeker, victims: Sequence[RunningGang]) -> EvictionMeasure:
    """What it costs to evict these."""
    sides = {side_of(seeker, gang) for gang in victims if gang.path[-1] is not seeker.project}
    below_quota = below_share = 0
    place = _place(seeker)
    for side in sides:
        after = side.load(place) - inside(side, victims)[place]
        below_quota += max(0, side.entitlement.quota[place] - after)
        below_share += max(0, side.share[place] - after)
    return EvictionMeasure(
        below_quota=below_quota,
        below_share=below_share,
        rank=max((side.entitlement.rank for side in sides), default=0),
        level=max(gang.level for gang in victims),
        lost=sum(map(lost_work, victims)),
        number=len(victims),
        newest=tuple(sorted(-gang.order for gang in victims)),
    )


def lost_work(gang: RunningGang) -> int:
    """Work of a gang that would be lost, in thousandths of a GPU times seconds."""
    weight = gang.size.gpus or max(MILLIS_PER_GPU, gang.size.cpus // CPUS_PER_GPU)
    return weight * (gang.lost_seconds + START_SECONDS)


def _place(seeker: RoomSeeker) -> int:
    """The resource in which it is measured what units lack: the first that counts."""
    return seeker.counted[0] if seeker.counted else 0
