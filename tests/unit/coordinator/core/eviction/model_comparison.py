"""What the core decides of a small pool beside what the plain model decides of it."""

from coordinator.core.scheduling.eviction.eviction import Eviction
from tests.unit.coordinator.core.eviction.core_pool import POOL, CorePool
from tests.unit.coordinator.core.eviction.plain_rooms import PlainJob


def orders(core: CorePool) -> tuple[list[str], list[str]]:
    """The jobs that wait in the order of the core, and in that of the model."""
    return [job.name for job in core.in_order()], [job.name for job in core.plain.in_order()]


def shares(core: CorePool) -> tuple[dict[str, int], dict[str, int]]:
    """The share of each unit by the core, and by the model."""
    core.units.share_out(POOL)
    return {name: core.units.path(name, POOL)[-1].share[0] for name in core.plain.units}, core.plain.shares()


def victims(core: CorePool) -> list[tuple[PlainJob, frozenset[str], frozenset[str]]]:
    """Each job that waits, whom the model evicts for it and whom the core does; nobody: an empty set."""
    found = []
    for job in core.plain.in_order():
        models, decided = core.plain.victims(job, {}), core.decide(job, {})
        gangs = decided.victims if isinstance(decided, Eviction) else ()
        found.append(
            (job, frozenset(each.name for each in models or ()), frozenset(str(gang.attempt.job) for gang in gangs))
        )
    return found


def difference(core: CorePool) -> str:
    """The first thing that is not as in the model, in a word; empty: all is."""
    for name, (one, other) in (("shares", shares(core)), ("order", orders(core))):
        if one != other:
            return name
    return "victims" if any(models != cores for _, models, cores in victims(core)) else ""
