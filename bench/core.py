"""The coordinator's core by itself: scheduling cycles at scale, and what one event costs as fleet and queue grow.

Pure: no clock, network or store. Nodes have eight GPUs and are full, with gangs that hold eight nodes each; queued jobs
are of forty different request classes, and the first of them wants half of the fleet.
"""

import gc
import math
from collections.abc import Callable, Sequence

from bench import evictions, projects, uneven_fleet
from bench.core_fleet import GPUS, NODES, QUEUED, Fleet, busy, ends_and_next, queued_up, reported, timed, timed_at_pace
from bench.figures import Bar
from bench.setting import Setting
from coordinator.core.events import (
    HeartbeatReceived,
    TimePassed,
)
from coordinator.core.scheduling.cycle import schedule
from coordinator.core.turn.turn import Turn
from muster.domain.gangs.plan import Stage
from muster.domain.ids import AttemptId

FLEETS = (50, 150, 500, 1500, 5000)
QUEUES = (100, 1000, 10_000, 100_000)
NOTHING_BAR = Bar(figure="scheduling cycle, 5,000 nodes, 10,000 queued jobs: nothing changed", limit=5, unit="ms")
SUBMIT_BAR = Bar(figure="scheduling cycle, 5,000 nodes, 10,000 queued jobs: one job submitted", limit=10, unit="ms")
SLOPE = 0.15
"""Most slope of a log-log fit: what does not depend on size has 0, what is proportional to it has 1."""
END, GANGS = "end of a gang, next one placed", "running gangs"
"""No bar for the one against the other: where more gangs run on as many nodes, less comes free with each."""
CYCLE = "scheduling cycle, nothing changed"
"""No event, and so without a bar for its slope; what it may take is said for 5,000 nodes and 10,000 jobs."""


async def measure(setting: Setting) -> None:
    """Cycles, then cost against size."""
    await setting.quiet(f"core: {NODES} nodes, {QUEUED} queued jobs")
    _cycles(setting)
    await setting.quiet(f"core: {NODES} uneven nodes in racks, {QUEUED} queued jobs")
    uneven_fleet.measure(setting)
    await setting.quiet(f"core: evictions in a fleet of {NODES} nodes that is borrowed whole")
    evictions.measure(setting)
    await setting.quiet(f"core: {NODES} uneven nodes that {projects.PROJECTS} projects share")
    projects.measure(setting)
    await setting.quiet("core: cost of one event against fleet, queue, projects and running gangs")
    fleets = FLEETS[:-1] if setting.quick else FLEETS
    queues = QUEUES[:-1] if setting.quick else QUEUES
    _curve(setting, "nodes", fleets, lambda size: busy(size, 1000))
    _curve(setting, "queued jobs", queues, lambda size: busy(500, size))
    _curve(setting, "projects", projects.MANY_PROJECTS, _shared_by)
    _curve(setting, GANGS, tuple(projects.RUNNING), lambda size: queued_up(projects.crammed(size), 1000))


def _shared_by(count: int) -> Fleet:
    """A fleet of so many projects; what waits is as large as what runs, so that each end has one gang placed."""
    return projects.shared(count, projects.FEW_NODES, 2000, gangs=True)


def _cycles(setting: Setting) -> None:
    it, repeats = busy(NODES, QUEUED), setting.repeats(30, 10)

    def cycle() -> None:
        schedule(Turn(it.cluster, it.now))

    found = {
        "nothing changed": timed_at_pace(repeats, cycle),
        "one job submitted": timed_at_pace(repeats, lambda: it.submit(3, GPUS)),
        "time passed": timed_at_pace(repeats, lambda: it.take(TimePassed())),
        "heartbeat": timed_at_pace(repeats, lambda: it.take(_heartbeat(it))),
        "one job ended": timed_at_pace(5, ends_and_next(it), warm=0),
    }
    for name, (values, pace) in found.items():
        setting.findings.take(f"cycle {NODES} nodes {QUEUED} queued: {name}", values, "ms", pace)
    setting.findings.at_pace(NOTHING_BAR, f"cycle {NODES} nodes {QUEUED} queued: nothing changed")
    setting.findings.at_pace(SUBMIT_BAR, f"cycle {NODES} nodes {QUEUED} queued: one job submitted")


def _heartbeat(it: Fleet) -> HeartbeatReceived:
    node = it.nodes[it.jobs % len(it.nodes)]
    return HeartbeatReceived(node=node, plan_revision=it.cluster.presence[node].plan_revision)


def _curve(setting: Setting, axis: str, sizes: Sequence[int], fleet_of: Callable[[int], Fleet]) -> None:
    """Each event at each size; the slope of the medians on logarithmic scales."""
    medians: dict[str, list[float]] = {}
    repeats = setting.repeats(30, 10)
    for size in sizes:
        it = fleet_of(size)
        running = it.run_gang()
        it.rest()  # so that no event pays for what the start of this gang has left to later turns
        member = next(iter(it.cluster.gangs.members(AttemptId(running, 1))))
        events: dict[str, Callable[[], object]] = {
            "heartbeat": lambda it=it: it.take(_heartbeat(it)),  # type: ignore[misc]  # mypy infers no types of defaults in lambdas
            "report that says nothing new": lambda it=it, member=member: it.take(reported(member, Stage.RUNNING)),  # type: ignore[misc]  # mypy infers no types of defaults in lambdas
            "submit of a job that must wait": lambda it=it: it.submit(3, GPUS),  # type: ignore[misc]  # mypy infers no types of defaults in lambdas
            END: ends_and_next(it),
            CYCLE: lambda it=it: schedule(Turn(it.cluster, it.now)),  # type: ignore[misc]  # mypy infers no types of defaults in lambdas
        }
        for name, action in events.items():
            ends = name == END
            values = timed(5 if ends else repeats, action, warm=0 if ends else 2)
            series = setting.findings.take(f"event, {size} {axis}: {name}", values, "ms")
            medians.setdefault(name, []).append(series.median)
        gc.unfreeze()
    for name, values in medians.items():
        limit = None if name == CYCLE or (name == END and axis == GANGS) else SLOPE
        bar = Bar(figure=f"cost of one event against {axis}, slope: {name}", limit=limit)
        setting.findings.judge(bar, slope(sizes, values), f"event … {axis}: {name}")


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """The slope of the straight line through the points on logarithmic scales."""
    xs, ys = [math.log(size) for size in sizes], [math.log(value) for value in values]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    above = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return above / sum((x - mean_x) ** 2 for x in xs)
