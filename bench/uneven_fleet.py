"""The core with a fleet as they grow: no two nodes have the same CPUs and memory free, and each says its rack.

A fleet whose nodes are all alike hides what a search costs that looks at nodes one by one.
"""

import gc
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import cycle, islice
from random import Random

from bench.core_fleet import GPUS, NODES, QUEUED, Fleet, ends_and_next, inventory, queued_up, timed, timed_at_pace
from bench.figures import Bar
from bench.programs import ProgramError
from bench.setting import Setting
from coordinator.core.outlook.changes import helpful_changes
from coordinator.core.outlook.forecast import estimate_start
from coordinator.core.placement.bins import Capacities
from coordinator.core.placement.candidates import Available
from coordinator.core.placement.capacity import Capacity
from coordinator.core.placement.placement import NoFit, Seat, fits, place
from coordinator.core.scheduling.cycle import LOOKS, schedule
from coordinator.core.turn.turn import Turn
from muster.domain.fleet.node import Inventory
from muster.domain.ids import NodeId
from muster.domain.jobs.job import DEFAULT_PROJECT, JobSpec, Resources, Role
from muster.domain.jobs.placing.topology import Topology

RACK = 16
"""Nodes in a rack."""
WIDE_RACK = 320
"""Nodes in a rack that holds a gang of 64 nodes, when a quarter of them is empty."""
WANTED = tuple((count, gpus, cpus) for count in (1, 4, 16, 3000) for gpus in (0, 1, 2, 4, 8) for cpus in (1, 12))
"""Executions, and what each needs, of the jobs for which room is looked for."""

_OF = f"{NODES:,} uneven nodes in racks"
FIT_BAR = Bar(figure=f"one fit on {_OF}, against even ones", limit=10, unit="x")
NOTHING_BAR = Bar(figure=f"cycle, {_OF}, {QUEUED:,} queued jobs: nothing changed", limit=0.5, unit="ms")
SUBMIT_BAR = Bar(figure=f"cycle, {_OF}, {QUEUED:,} queued jobs: one job submitted, must wait", limit=1, unit="ms")
END_BAR = Bar(figure=f"cycle, {_OF}, {QUEUED:,} queued jobs: a gang ends, next one placed", limit=5, unit="ms")
WHY_BAR = Bar(figure=f"why 64 executions wait on {_OF}: what helps, and when they start", limit=10, unit="ms")
PLACED_BAR = Bar(figure=f"{LOOKS} placements on {_OF}, records apart", limit=10, unit="ms")
RACK_BAR = Bar(figure=f"required rack, 64 nodes of {GPUS}, on {_OF}", limit=2, unit="ms")


def measure(setting: Setting) -> None:
    """One fit, then cycles."""
    _fits(setting)
    _placements(setting)
    _racks(setting)
    it, repeats = queued_up(Fleet(NODES, uneven_inventory), QUEUED), setting.repeats(30, 10)
    found = {
        NOTHING_BAR: timed_at_pace(repeats, lambda: schedule(Turn(it.cluster, it.now))),
        SUBMIT_BAR: timed_at_pace(repeats, lambda: it.submit(3, GPUS)),
        END_BAR: timed_at_pace(5, ends_and_next(it), warm=0),
    }
    for bar, (values, pace) in found.items():
        setting.findings.take(f"uneven: {bar.figure}", values, "ms", pace)
        setting.findings.at_pace(bar, f"uneven: {bar.figure}")
    _why(setting)


def uneven_inventory(node: str, number: int) -> Inventory:
    """A node with CPUs and memory of its own, and its rack."""
    chance = Random(number)  # noqa: S311 - chance, not secrecy
    return replace(
        inventory(node),
        cpus=chance.randint(48, 192),
        memory=chance.randint(2**37, 2**40),
        labels={"rack": f"r{number // RACK}", "zone": "abc"[number // RACK % 3], "host": node},
    )


def _fits(setting: Setting) -> None:
    even, uneven = Capacities(_free(uneven=False)), Capacities(_free(uneven=True))
    jobs = [_job(*wanted) for wanted in WANTED]
    repeats = setting.repeats(30, 10)
    for name, capacities in (("even", even), ("uneven", uneven)):
        available = Available(capacities=capacities)
        values = timed(repeats, lambda available=available: [fits(job, available) for job in jobs])  # type: ignore[misc]  # mypy infers no types of defaults in lambdas
        setting.findings.take(f"one fit, {NODES} {name} nodes", [value / len(jobs) for value in values], "ms")
    setting.findings.ratio(FIT_BAR, f"one fit, {NODES} uneven nodes", f"one fit, {NODES} even nodes")


def _why(setting: Setting) -> None:
    """Whoever waits asks, where every job that runs has a limit in time."""
    fleet = Fleet(NODES, uneven_inventory, lambda number: timedelta(minutes=5 + 37 * number % 5000))
    job, cluster = fleet.submit(64, GPUS), fleet.cluster

    def ask() -> None:
        helpful_changes(cluster, job, fleet.now)
        if estimate_start(cluster, job, fleet.now).latest is None:
            raise ProgramError("every job has a limit, and yet nobody knows when the next one starts")

    values, pace = timed_at_pace(setting.repeats(30, 10), ask)
    setting.findings.take(WHY_BAR.figure, values, "ms", pace)
    setting.findings.at_pace(WHY_BAR, WHY_BAR.figure)


def _placements(setting: Setting) -> None:
    """So many gangs as one cycle places, each into what those before have left."""
    nodes = list(_free(uneven=True))
    jobs = list(islice(cycle(_job(count, gpus, 4) for count in (1, 2, 4) for gpus in (1, 2, 4, 8)), LOOKS))
    values, paces = [], []
    for _ in range(setting.repeats(10, 3)):
        capacities = Capacities(nodes)
        _place_all(jobs, capacities)  # a coordinator has looked at its nodes before
        for node in nodes:
            capacities.put(node)
        gc.collect()
        gc.freeze()  # as in a coordinator, which never looks for garbage among what it knows of its nodes
        found, pace = timed_at_pace(1, lambda capacities=capacities: _place_all(jobs, capacities), warm=0)  # type: ignore[misc]  # mypy infers no types of defaults in lambdas
        values += found
        paces.append(pace)
    setting.findings.take(f"uneven: {PLACED_BAR.figure}", values, "ms", statistics.median(paces))
    setting.findings.at_pace(PLACED_BAR, f"uneven: {PLACED_BAR.figure}")


def _racks(setting: Setting) -> None:
    """A gang that must lie in one rack, on racks that hold it; and on racks that do not, which takes a look at all."""
    gang = replace(_job(64, GPUS, 4), topology=Topology(required="rack"))
    wide = Capacities(
        replace(each, labels={"zone": "a", "rack": f"r{number // WIDE_RACK}", "host": each.node})
        for number, each in enumerate(_free(uneven=True))
    )
    narrow = Capacities(_free(uneven=True))
    for capacities, fits_in in ((wide, True), (narrow, False)):
        if isinstance(place(gang, Available(capacities=capacities)), NoFit) is fits_in:
            raise ProgramError("racks are not as large as they are thought to be")
    repeats = setting.repeats(30, 10)
    values, pace = timed_at_pace(repeats, lambda: place(gang, Available(capacities=wide)))
    setting.findings.take(f"uneven: {RACK_BAR.figure}", values, "ms", pace)
    setting.findings.at_pace(RACK_BAR, f"uneven: {RACK_BAR.figure}")
    values = timed(repeats, lambda: place(gang, Available(capacities=narrow)))
    setting.findings.take(f"uneven: {RACK_BAR.figure}, none is large enough", values, "ms")


def _place_all(jobs: Iterable[JobSpec], capacities: Capacities) -> None:
    for job in jobs:
        found = place(job, Available(capacities=capacities))
        if isinstance(found, NoFit):
            raise ProgramError(f"a job of {job.size} executions did not fit: {found}")
        given: dict[NodeId, list[Seat]] = {}
        for seat in found.seats:
            given.setdefault(seat.node, []).append(seat)
        for node, seats in given.items():  # the scheduler works a node out anew once for all that a job was given there
            before, taken = capacities.of(node), {gpu for seat in seats for gpu in seat.gpus}
            gpus = tuple(gpu for gpu in before.gpus if gpu.uuid not in taken)
            used = len(seats) * job.roles[0].resources.cpu_millis
            capacities.put(replace(before, gpus=gpus, cpu_millis=before.cpu_millis - used))


def _free(*, uneven: bool) -> Iterator[Capacity]:
    """Nodes of which a quarter is empty, and the others have given some of their GPUs away."""
    for number in range(NODES):
        name, chance = f"node{number}", Random(number)  # noqa: S311 - chance, not secrecy
        having = uneven_inventory(name, number) if uneven else inventory(name)
        taken = 0 if number % 4 == 0 else chance.randint(1, GPUS)
        used = chance.randint(0, 4000 * taken) if uneven else 1000 * taken
        yield Capacity(
            node=NodeId(name),
            gpus=having.gpus[taken:],
            cpu_millis=having.cpus * 1000 - used,
            memory=having.memory - (chance.randint(0, 2**33 * taken) if uneven else 0),
            runtimes=having.runtimes,
            labels=having.labels,
        )


def _job(count: int, gpus: int, cpus: int) -> JobSpec:
    role = Role(count=count, command=("train",), resources=Resources(gpus=gpus, cpu_millis=1000 * cpus, memory=2**30))
    return JobSpec(name="train", project=DEFAULT_PROJECT, roles=(role,))
