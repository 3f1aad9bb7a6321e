"""What is shared out: exactly what there is, in whole numbers, whoever comes first."""

from fractions import Fraction
from itertools import groupby
from random import Random

from coordinator.core.sharing.division import Claimant, divide

DIVISIONS = 30_000


def claimant(name: str, wanted: int, quota: int = 0, weight: int = 1, rank: int = 0) -> Claimant:
    return Claimant(name, wanted, quota, weight, rank)


def gpus(amount: int, *claimants: Claimant) -> list[int]:
    """Shares in whole GPUs, of claimants in whole GPUs."""
    thousandths = [each._replace(wanted=each.wanted * 1000, quota=each.quota * 1000) for each in claimants]
    return [part // 1000 for part in divide(amount * 1000, thousandths, 1000)]


def test_what_is_left_after_the_quotas_goes_by_weight_and_the_last_gpu_to_the_largest_rest() -> None:
    shares = gpus(13, claimant("A", 9, 4, 2), claimant("B", 6, 2, 1), claimant("C", 3, 0, 0))

    assert shares == [9, 4, 0]


def test_two_who_want_everything_get_half_each() -> None:
    assert gpus(16, claimant("A", 16), claimant("B", 16)) == [8, 8]


def test_whoever_wants_little_leaves_the_rest_to_the_others() -> None:
    assert gpus(12, claimant("A", 1), claimant("B", 20), claimant("C", 20, weight=4)) == [1, 2, 9]


def test_higher_ranks_get_what_they_want_before_lower_ones_get_anything() -> None:
    assert gpus(6, claimant("A", 4, rank=1), claimant("B", 6, weight=9)) == [4, 2]


def test_a_quota_that_is_not_wanted_is_shared_out() -> None:
    assert gpus(8, claimant("A", 1, quota=6), claimant("B", 20)) == [1, 7]


def test_quotas_that_promise_more_than_there_is_shrink_alike() -> None:
    assert gpus(6, claimant("A", 8, quota=8), claimant("B", 4, quota=4), claimant("C", 9)) == [4, 2, 0]


def test_a_part_of_a_gpu_is_shared_out_as_well() -> None:
    parts = divide(2500, [claimant("A", 2000), claimant("B", 2000)], 1000)

    assert sum(parts) == 2500
    assert max(parts) == 1500


def test_nobody_without_a_weight_gets_more_than_the_quota_even_if_all_is_free() -> None:
    assert gpus(100, claimant("A", 8, quota=2, weight=0), claimant("B", 3)) == [2, 3]


def plain(amount: int, claimants: list[Claimant], whole: int) -> list[int]:
    """The division as it is written in words, with fractions and without short cuts."""
    parts = {each.name: min(each.quota, each.wanted) for each in claimants}
    promised = sum(parts.values())
    if promised > amount:
        exact = {each.name: Fraction(parts[each.name] * amount, promised) for each in claimants}
        floors = {name: int(part) for name, part in exact.items()}
        turn = sorted(claimants, key=lambda each: (floors[each.name] - exact[each.name], -each.weight, each.name))
        for each in turn[: amount - sum(floors.values())]:
            floors[each.name] += 1
        return [floors[each.name] for each in claimants]
    left = amount - promised
    for _, of_rank in groupby(sorted(claimants, key=lambda each: -each.rank), key=lambda each: each.rank):
        hungry = [each for each in of_rank if each.weight and parts[each.name] < each.wanted]
        rests: dict[str, Fraction] = {}
        while hungry and left:
            weights = sum(each.weight for each in hungry)
            fair = {each.name: Fraction(left * each.weight, weights) for each in hungry}
            filled = [each for each in hungry if each.wanted - parts[each.name] <= fair[each.name]]
            for each in filled:
                left -= each.wanted - parts[each.name]
                parts[each.name] = each.wanted
            if filled:
                hungry = [each for each in hungry if each not in filled]
                continue
            for each in hungry:
                lots = int(fair[each.name] / whole) * whole
                parts[each.name] += lots
                left -= lots
                rests[each.name] = fair[each.name] - lots
            break
        turn = sorted((each for each in hungry if rests), key=lambda each: (-rests[each.name], -each.weight, each.name))
        while left and any(parts[each.name] < each.wanted for each in turn):
            for each in turn:
                lot = min(whole, left, each.wanted - parts[each.name])
                parts[each.name] += lot
                left -= lot
    return [parts[each.name] for each in claimants]


def drawn(chance: Random) -> tuple[int, list[Claimant], int]:
    whole = chance.choice((1, 10, 1000))
    names = chance.sample("ABCDEFGH", chance.randint(1, 8))
    claimants = [
        Claimant(
            name,
            wanted=chance.randint(0, 40) * chance.choice((whole, 1)),
            quota=chance.choice((0, 0, chance.randint(0, 20) * whole, 1 << 60)),
            weight=chance.choice((0, 1, 1, 2, 3, 1000)),
            rank=chance.choice((0, 0, 0, 1, -5)),
        )
        for name in names
    ]
    return chance.randint(0, 80) * chance.choice((whole, 1)), claimants, whole


def test_shares_of_random_claimants_are_what_the_words_say() -> None:
    chance = Random(1)
    for _ in range(DIVISIONS // 10):
        amount, claimants, whole = drawn(chance)
        assert divide(amount, claimants, whole) == plain(amount, claimants, whole), (amount, claimants, whole)


def test_shares_keep_quotas_leave_nothing_over_and_depend_on_no_order() -> None:
    chance = Random(2)
    for _ in range(DIVISIONS):
        amount, claimants, whole = drawn(chance)
        parts = divide(amount, claimants, whole)
        check(amount, claimants, parts)
        order = chance.sample(range(len(claimants)), len(claimants))
        again = divide(amount, [claimants[place] for place in order], whole)
        assert again == [parts[place] for place in order], "the order of units decides"


def check(amount: int, claimants: list[Claimant], parts: list[int]) -> None:
    bases = [min(each.quota, each.wanted) for each in claimants]
    assert sum(parts) <= amount
    assert all(part <= each.wanted for part, each in zip(parts, claimants, strict=True))
    if sum(bases) <= amount:
        assert all(base <= part for base, part in zip(bases, parts, strict=True)), "a quota is not kept"
    if sum(parts) < amount:
        hungry = [each for each, part in zip(claimants, parts, strict=True) if each.weight and part < each.wanted]
        assert not hungry, "something is left over while somebody with a weight wants more"


def test_more_weight_never_costs_a_whole_gpu() -> None:
    chance = Random(7)
    for _ in range(DIVISIONS // 10):
        amount, claimants, whole = drawn(chance)
        place = chance.randrange(len(claimants))
        heavier = list(claimants)
        heavier[place] = heavier[place]._replace(weight=heavier[place].weight + chance.randint(1, 5))
        before, after = divide(amount, claimants, whole)[place], divide(amount, heavier, whole)[place]
        assert after > before - whole, (amount, claimants, place)
