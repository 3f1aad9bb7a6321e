"""The core with a fleet that many projects share: shares, terms, the queue, ends of gangs, and a start.

Uneven nodes in racks are held by gangs of all projects, a tenth of which is a department each. Every project has a
quota, and ten thousand jobs wait. Whoever asks for victims finds none, as nobody has run for long.
"""

import gc
import math
import time
from collections.abc import Callable, Iterator, Sequence

from bench.core_fleet import BEGAN, GANG, GPUS, NODES, QUEUED, Fleet, reported, timed, timed_at_pace
from bench.figures import Bar
from bench.programs import ProgramError
from bench.setting import Setting
from bench.uneven_fleet import uneven_inventory
from coordinator.core.events import JobSubmitted, ProjectAdded, QuotasChanged
from coordinator.core.loading import load
from coordinator.core.records import Record
from coordinator.core.requests.quotas import unit_of
from coordinator.core.sharing.standing import Tally
from coordinator.views.quotas import queue_page
from muster.domain.fleet.pool import DEFAULT_POOL
from muster.domain.fleet.quota import (
    AmountBounds,
    Amounts,
    QuotaTerms,
    QuotaUnit,
    UnitChange,
    UnitKind,
    UnitTerms,
)
from muster.domain.gangs.fence import LEASE
from muster.domain.gangs.plan import Stage
from muster.domain.ids import AttemptId, JobId

PROJECTS = 200
IN_DEPARTMENT = 10
"""Projects of a department."""
MANY_PROJECTS = (10, 100, 1000)
FEW_NODES = 60 * GANG
"""Nodes that they share."""
RUNNING = {125: (GANG, GPUS), 1000: (1, GPUS), 8000: (1, 1)}
"""How many gangs run on a thousand nodes: with so many executions, of so many GPUs each."""
QUEUE_PAGE = 1000
AT_ONCE = 100
"""Jobs that are taken in with one turn while the fleet is filled; as many as one turn places."""
LATE = 0.99

_OF = f"{NODES:,} uneven nodes, {QUEUED:,} queued jobs of {PROJECTS} projects"
_UNITS = PROJECTS + PROJECTS // IN_DEPARTMENT
SHARES_BAR = Bar(figure=f"shares of {_UNITS} units", limit=1, unit="ms")
TERMS_BAR = Bar(figure=f"terms of a department changed, {_OF}", limit=10, unit="ms")
PAGE_BAR = Bar(figure=f"muster queue, a page of {QUEUE_PAGE:,}, {_OF}", limit=50, unit="ms")
LAST_PAGE_BAR = Bar(figure=f"muster queue, the last page of {QUEUE_PAGE:,}, {_OF}", limit=50, unit="ms")
END_BAR = Bar(figure=f"a gang of {GANG * GPUS} GPUs ends, the next one placed, {_OF}", limit=5, unit="ms")
LATE_END_BAR = Bar(figure=f"{END_BAR.figure}, 99th percentile", limit=10, unit="ms")
SMALL = f"a gang of {GANG * GPUS} GPUs ends, small ones placed in its room, {_OF}"
"""No bar: one end makes room for up to forty of them, each with records of its own, and all are placed in one turn."""
LOAD_BAR = Bar(
    figure=f"load of {QUEUED:,} queued jobs: of {PROJECTS} projects with terms, over one without", limit=0.3, unit="s"
)


def measure(setting: Setting) -> None:
    """Figures of one fleet; what is not durable is not carried out."""
    it, repeats, ends = shared(PROJECTS), setting.repeats(30, 10), setting.repeats(200, 50)
    found = {
        SHARES_BAR: timed_at_pace(repeats, _shares(it)),
        TERMS_BAR: timed_at_pace(repeats, _terms_changed(it)),
        PAGE_BAR: timed_at_pace(repeats, lambda: _page(it, 1)),
        LAST_PAGE_BAR: timed_at_pace(repeats, lambda: _page(it, QUEUED - QUEUE_PAGE + 1)),
        END_BAR: timed_at_pace(ends, _end(shared(PROJECTS, gangs=True)), warm=0),
    }
    setting.findings.take(f"projects: {SMALL}", timed(ends, _end(it), warm=0), "ms")
    for bar, (values, pace) in found.items():
        setting.findings.take(f"projects: {bar.figure}", values, "ms", pace)
        setting.findings.at_pace(bar, f"projects: {bar.figure}")
    setting.findings.at_pace(LATE_END_BAR, f"projects: {END_BAR.figure}", _late)
    gc.unfreeze()
    _loads(setting, tuple(it.cluster.records))


def shared(projects: int, nodes: int = NODES, queued: int = QUEUED, *, gangs: bool = False) -> Fleet:
    """A fleet that is held by gangs of so many projects, with jobs of all of them that wait, and of one that come.

    `gangs`: whether what waits is as large as what runs; else it is small, but for the first one.
    """
    it = Fleet(nodes, uneven_inventory, full=False)
    names = [f"project-{number}" for number in range(projects)]
    it.take(*(ProjectAdded(name=name) for name in names))
    it.take(QuotasChanged(changes=tuple(_terms(names, nodes * GPUS // projects))))
    fill(it, [it.submitted(GANG, GPUS, names[number % projects]) for number in range(nodes // GANG)])
    it.now += 2 * LEASE  # before that nobody is evicted
    (it.queue_gangs if gangs else it.queue)(queued, names)
    it.project = names[0]
    it.rest()  # until all projects have looked for victims in vain
    gc.collect()
    gc.freeze()
    return it


def fill(it: Fleet, gangs: Sequence[JobSubmitted]) -> None:
    """Have all these gangs placed."""
    for first in range(0, len(gangs), AT_ONCE):
        it.take(*gangs[first : first + AT_ONCE])
    if len(it.cluster.queue):
        raise ProgramError(f"{len(it.cluster.queue)} of {len(gangs)} gangs found no room")


def crammed(gangs: int) -> Fleet:
    """A fleet that is held by so many gangs, however large it is."""
    count, gpus = RUNNING[gangs]
    it = Fleet(gangs * count * gpus // GPUS, full=False)
    fill(it, [it.submitted(count, gpus) for _ in range(gangs)])
    return it


def _late(values: Sequence[float]) -> float:
    """What all but one in a hundred take at the most."""
    return sorted(values)[math.ceil(LATE * len(values)) - 1]


def _shares(it: Fleet) -> Callable[[], None]:
    """One project after the other wants a little more, and so shares are others."""
    units, names = it.cluster.unit_load.units, iter(range(10 * PROJECTS))
    wants = Amounts(gpus=1000)

    def share_out() -> None:
        units.count(f"project-{next(names) % PROJECTS}", DEFAULT_POOL, Tally.WAITING, wants)
        units.share_out(DEFAULT_POOL)

    return share_out


def _terms_changed(it: Fleet) -> Callable[[], None]:
    """A department is promised more and more."""
    promised = iter(range(1, 10_000))

    def change() -> None:
        before = unit_of(it.cluster, "department-0")
        after = _department("department-0", 1000 * next(promised))
        it.take(QuotasChanged(changes=(UnitChange(before=before, after=after),)))
        if unit_of(it.cluster, "department-0") != after:
            raise ProgramError("a department has other terms than it was given")

    return change


def _page(it: Fleet, first: int) -> None:
    page = queue_page(it.cluster, it.now, lambda _: True, lambda _: True, first, QUEUE_PAGE)
    if len(page.lines) != QUEUE_PAGE or bool(page.next_page) is (first > QUEUED - QUEUE_PAGE):
        raise ProgramError(f"a page of {len(page.lines)} jobs, and then {page.next_page!r}")


def _end(it: Fleet) -> Callable[[], None]:
    """The gangs that hold the fleet end, one after the other."""
    ending = iter(range(1, len(it.nodes) // GANG))

    def end() -> None:
        members = it.cluster.gangs.members(AttemptId(JobId(f"j{next(ending)}"), 1))
        it.take(*(reported(member, Stage.EXITED) for member in members))

    return end


def _loads(setting: Setting, stored: Sequence[Record]) -> None:
    """A coordinator starts with what was stored, and with the same as jobs of one project without terms."""
    plain = Fleet(NODES, uneven_inventory)
    plain.queue(QUEUED)
    values: dict[str, list[float]] = {"projects with terms": [], "one project": []}
    for _ in range(setting.repeats(5, 2)):
        for name, records in zip(values, (stored, tuple(plain.cluster.records)), strict=True):
            gc.collect()
            began = time.perf_counter()
            load(records, BEGAN)
            values[name].append(time.perf_counter() - began)
    for name, seconds in values.items():
        setting.findings.take(f"load of {QUEUED:,} queued jobs, {name}", seconds, "s")
    ours, theirs = (f"load of {QUEUED:,} queued jobs, {name}" for name in values)
    setting.findings.excess(LOAD_BAR, ours, theirs)


def _terms(names: Sequence[str], gpus: int) -> Iterator[UnitChange]:
    """All GPUs are promised, to each project as many."""
    for number in range(-(-len(names) // IN_DEPARTMENT)):
        yield UnitChange(before=None, after=_department(f"department-{number}", gpus * IN_DEPARTMENT))
    for number, name in enumerate(names):
        before = QuotaUnit(name=name, kind=UnitKind.PROJECT)
        yield UnitChange(
            before=before,
            after=QuotaUnit(
                name=name,
                kind=UnitKind.PROJECT,
                department=f"department-{number // IN_DEPARTMENT}",
                terms=_promised(gpus),
            ),
        )


def _department(name: str, gpus: int) -> QuotaUnit:
    return QuotaUnit(name=name, kind=UnitKind.DEPARTMENT, terms=_promised(gpus))


def _promised(gpus: int) -> UnitTerms:
    return UnitTerms(everywhere=QuotaTerms(quota=AmountBounds(gpus=gpus * 1000)))
