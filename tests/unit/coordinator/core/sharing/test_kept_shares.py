"""Shares that are kept from one count to the next are those that a division of everything anew comes to."""

from collections import Counter
from random import Random

from coordinator.core.sharing.standing import Tally
from coordinator.core.sharing.units import Units
from muster.domain.fleet.quota import AmountBounds, Amounts, QuotaTerms, QuotaUnit, UnitKind, UnitTerms

POOL = "default"
TREES, COUNTS = 80, 40
DEPARTMENTS = ("", "X", "Y")
PROJECTS = tuple("ABCDEFG")
SIZES = (250, 500, 1000, 1000, 2000, 8000, 30_000)
"""Thousandths of GPUs that jobs want."""
COUNTED = (Tally.WAITING, Tally.HELD)


def test_shares_stay_right_whatever_is_counted_in_whatever_order() -> None:
    for seed in range(TREES):
        chance = Random(seed)
        units = Units()
        tree = [department(chance, name) for name in DEPARTMENTS if name] + [project(chance, each) for each in PROJECTS]
        for unit in tree:
            units.put(unit)
        capacity = Amounts(gpus=chance.choice((3_000, 16_000, 64_000)), cpus=64_000)
        units.in_pool(POOL).set_capacity(capacity)
        counts: Counter[tuple[str, Tally, int]] = Counter()
        for step in range(COUNTS):
            if step and chance.random() < 0.1:
                number = chance.randrange(len(tree))
                make = project if tree[number].kind is UnitKind.PROJECT else department
                tree[number] = make(chance, tree[number].name)
                units.put(tree[number])
            count(chance, units, counts)
            if chance.random() < 0.7:
                units.share_out(POOL)
                assert shares(units) == shares(anew(tree, capacity, counts)), f"seed {seed}, step {step}"


def count(chance: Random, units: Units, counts: Counter[tuple[str, Tally, int]]) -> None:
    """Count a job of some project, or no longer."""
    there = [each for each in counts if counts[each]]
    if there and chance.random() < 0.4:
        project_, tally, size = chance.choice(there)
        counts[project_, tally, size] -= 1
        units.count(project_, POOL, tally, Amounts(gpus=size), -1)
    else:
        project_, tally, size = chance.choice(PROJECTS), chance.choice(COUNTED), chance.choice(SIZES)
        counts[project_, tally, size] += 1
        units.count(project_, POOL, tally, Amounts(gpus=size))


def anew(tree: list[QuotaUnit], capacity: Amounts, counts: Counter[tuple[str, Tally, int]]) -> Units:
    """The same, shared out once."""
    units = Units()
    for unit in tree:
        units.put(unit)
    units.in_pool(POOL).set_capacity(capacity)
    for (name, tally, size), times in counts.items():
        for _ in range(times):
            units.count(name, POOL, tally, Amounts(gpus=size))
    units.share_out(POOL)
    return units


def shares(units: Units) -> dict[str, list[int]]:
    """What each unit should have of what counts."""
    places = units.counted(POOL)
    found = {unit.name: units.in_pool(POOL).get(unit.name) for unit in units}
    return {
        name: [standing.share[place] for place in places] if standing is not None else [0 for _ in places]
        for name, standing in found.items()
    }


def department(chance: Random, name: str) -> QuotaUnit:
    return QuotaUnit(name=name, kind=UnitKind.DEPARTMENT, terms=UnitTerms(everywhere=some_terms(chance)))


def project(chance: Random, name: str) -> QuotaUnit:
    terms = UnitTerms(everywhere=some_terms(chance))
    return QuotaUnit(name=name, kind=UnitKind.PROJECT, department=chance.choice(DEPARTMENTS), terms=terms)


def some_terms(chance: Random) -> QuotaTerms:
    """Any promise, limit, weight and rank, also none."""
    return QuotaTerms(
        quota=AmountBounds(gpus=chance.choice((None, 0, 500, 2000, 8000))),
        limit=AmountBounds(gpus=chance.choice((None, None, 4000, 20_000))),
        weight=chance.choice((None, 0, 1, 3)),
        rank=chance.choice((None, 0, 1)),
    )
