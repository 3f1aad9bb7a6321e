"""What an eviction costs: the set of victims with the least measure is taken."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from coordinator.core.scheduling.eviction.entitlement import side_of
from coordinator.core.scheduling.eviction.gangs import RoomSeeker, RunningGang
from coordinator.core.sharing.standing import Standing

START_SECONDS = 60
"""What it takes to stop a gang and start it again, in seconds of its work."""


def lost_work(weight: int, seconds: int) -> int:
    """Work that is lost of a gang that counts so many thousandths of a GPU, so long after it was last saved."""
    return weight * (seconds + START_SECONDS)


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
    place, taken = _place(seeker), Counter[Standing]()
    for gang in victims:
        for standing in gang.path:
            taken[standing] += gang.size[place]
    for side in sides:
        after = side.load(place) - taken[side]
        below_quota += max(0, side.entitlement.quota[place] - after)
        below_share += max(0, side.share[place] - after)
    return EvictionMeasure(
        below_quota=below_quota,
        below_share=below_share,
        rank=max((side.entitlement.rank for side in sides), default=0),
        level=max(gang.level for gang in victims),
        lost=sum(gang.lost for gang in victims),
        number=len(victims),
        newest=tuple(sorted(-gang.order for gang in victims)),
    )


def _place(seeker: RoomSeeker) -> int:
    """The resource in which it is measured what units lack: the first that counts."""
    return seeker.counted[0] if seeker.counted else 0
