"""The division of one resource among the children of a unit, in whole numbers alone.

Each child is given what it wants of its quota. What is left over goes to those that want more: by rank, then by weight,
in whole GPUs (CPUs, GiB) as far as there are any.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple


class Claimant(NamedTuple):
    """A child that wants a part."""

    name: str
    wanted: int
    """The demand, as far as the limit lets it have so much."""
    quota: int
    weight: int
    rank: int


def divide(amount: int, claimants: Sequence[Claimant], whole: int) -> list[int]:
    """The part of each claimant; what is left over is dealt in lots of `whole`."""
    if sum(claimant.wanted for claimant in claimants) <= amount:  # nobody is short of anything
        return [each.wanted if each.weight else min(each.quota, each.wanted) for each in claimants]
    parts = [min(each.quota, each.wanted) for each in claimants]
    left = amount - sum(parts)
    if left < 0:
        return _scaled(parts, amount, claimants)
    hungry = [place for place, each in enumerate(claimants) if each.weight and parts[place] < each.wanted]
    hungry.sort(key=lambda place: -claimants[place].rank)
    for _, of_rank in groupby(hungry, key=lambda place: claimants[place].rank):
        if left <= 0:
            break
        left = _deal(parts, left, list(of_rank), claimants, whole)
    return parts


def _scaled(parts: Sequence[int], amount: int, claimants: Sequence[Claimant]) -> list[int]:
    """Parts of quotas that promise more than there is: all smaller alike, the largest remainders rounded up."""
    promised = sum(parts)
    scaled = [part * amount // promised for part in parts]
    rests = _in_turn(((part * amount % promised, place) for place, part in enumerate(parts)), claimants)
    for place in rests[: amount - sum(scaled)]:
        scaled[place] += 1
    return scaled


def _deal(parts: list[int], left: int, hungry: list[int], claimants: Sequence[Claimant], whole: int) -> int:
    """Deal out what is left among hungry claimants of one rank; what is left then."""
    rests: list[tuple[int, int]] = []
    while hungry and left:
        weights, round_of = sum(claimants[place].weight for place in hungry), left
        filled = [
            place
            for place in hungry
            if (claimants[place].wanted - parts[place]) * weights <= round_of * claimants[place].weight
        ]
        for place in filled:
            left -= claimants[place].wanted - parts[place]
            parts[place] = claimants[place].wanted
        if filled:
            hungry = [place for place in hungry if parts[place] < claimants[place].wanted]
            continue
        for place in hungry:
            due = round_of * claimants[place].weight
            lots = due // (weights * whole) * whole
            parts[place] += lots
            left -= lots
            rests.append((due - lots * weights, place))
        break
    turn = _in_turn(rests, claimants)
    while left and turn:
        for place in turn:
            lot = min(whole, left, claimants[place].wanted - parts[place])
            parts[place] += lot
            left -= lot
        turn = [place for place in turn if parts[place] < claimants[place].wanted]
    return left


def _in_turn(rests: Iterable[tuple[int, int]], claimants: Sequence[Claimant]) -> list[int]:
    """Claimants with the largest rest first, then the larger weight, then by name."""
    return [place for _, place in sorted(rests, key=lambda r: (-r[0], -claimants[r[1]].weight, claimants[r[1]].name))]
