"""One file on its way to eight nodes: as a gang, with a node that dies half-way, and each for itself."""

import asyncio
import os
import signal
import time
from pathlib import Path

from bench.data.inputs import all_took, took
from bench.data.origin import Origin
from bench.figures import Bar
from bench.fleet import CPUS, ENDED_WITHIN, Fleet, gang
from bench.programs import ProgramError
from bench.setting import Setting
from muster.domain.jobs.lifecycle import JobPhase

GANG = 8
SHARED, SMALL = 256_000_000, 48_000_000
UPLINK = 12_000_000
"""Bytes per second that the web server gives in all, and that a node gives to others."""
SPEED = f"uplinks of {UPLINK // 1_000_000} MB/s"
THROTTLED, FEW = f"an input of 256 MB, {SPEED}", f"an input of 48 MB, {SPEED}"
ONE, ALL = f"{THROTTLED}: 1 node", f"{THROTTLED}: {GANG} nodes"
ALL_BAR = Bar(figure=f"{THROTTLED}: {GANG} nodes / 1 node", limit=1.5)
COPIES_BAR = Bar(figure=f"{THROTTLED}, {GANG} nodes: copies that the server gave", limit=1.02)
KILLED = f"{THROTTLED}: {GANG} nodes, one killed half-way, until the others have it"
KILLED_BAR = Bar(figure=f"{THROTTLED}: {GANG} nodes, one killed half-way / 1 node", limit=1.8)
KILLED_COPIES_BAR = Bar(
    figure=f"{THROTTLED}, {GANG} nodes, one killed half-way: copies that the server gave", limit=1.15
)
USED = f"{THROTTLED}, {GANG} nodes: seconds of CPU of all agents"
FEW_ONE, FEW_DIRECT = f"{FEW}: 1 node", f"{FEW}: {GANG} nodes, each for itself"
DIRECT_BAR = Bar(figure=f"{FEW}: {GANG} nodes, each for itself / 1 node")
LOOK = 0.05
"""Seconds between two looks at what the nodes have."""


async def measure_direct(setting: Setting, muster: Fleet, origin: Origin) -> None:
    """What sharing saves, with a small file: it takes as long as all the rest otherwise. It warms up the nodes, too."""
    await setting.quiet(f"data: {FEW}, 1 node, then {GANG} nodes, each for itself")
    await took(muster, gang(GANG, "true", inputs=(origin.fresh(),)))
    one = await took(muster, gang(1, "true", inputs=(origin.fresh(),)))
    alone = gang(1, "true", cpus=CPUS * 1000, inputs=(origin.fresh(),))
    setting.findings.take(FEW_ONE, [one], "ms")
    setting.findings.take(FEW_DIRECT, [await all_took(muster, [alone] * GANG)], "ms")
    setting.findings.ratio(DIRECT_BAR, FEW_DIRECT, FEW_ONE)


async def measure_gang(setting: Setting, muster: Fleet, origin: Origin, nodes: Path) -> None:
    """Eight nodes beside one, and at last one of them is killed: `nodes` is where their directories are.

    Each is done once, as it takes up to half a minute.
    """
    await setting.quiet(f"data: {THROTTLED}, 1 node, then {GANG} nodes")
    one = await took(muster, gang(1, "true", inputs=(origin.fresh(),)))
    before, used = await origin.given(), muster.used()[1]
    every = await took(muster, gang(GANG, "true", inputs=(origin.fresh(),)))
    setting.findings.take(ONE, [one], "ms")
    setting.findings.take(ALL, [every], "ms")
    setting.findings.take(USED, [muster.used()[1] - used], "s")
    setting.findings.take(COPIES_BAR.figure, [(await origin.given() - before) / SHARED], "")
    setting.findings.ratio(ALL_BAR, ALL, ONE)
    setting.findings.absolute(COPIES_BAR, COPIES_BAR.figure)
    await setting.quiet(f"data: {THROTTLED}, {GANG} nodes, one of which is killed half-way")
    killed, given = await _killed(muster, origin, nodes)
    setting.findings.take(KILLED, [killed], "ms")
    setting.findings.take(KILLED_COPIES_BAR.figure, [given / SHARED], "")
    setting.findings.ratio(KILLED_BAR, KILLED, ONE)
    setting.findings.absolute(KILLED_COPIES_BAR, KILLED_COPIES_BAR.figure)


async def _killed(muster: Fleet, origin: Origin, nodes: Path) -> tuple[float, int]:
    """Milliseconds until all nodes have a file but the one that is killed half-way, and bytes that the server gave."""
    held, before = [_whole(nodes / f"node{number}") for number in range(1, GANG)], await origin.given()
    began = time.perf_counter()
    job = await muster.client.jobs.submit(gang(GANG, "true", inputs=(origin.fresh(),)))
    async with asyncio.timeout(ENDED_WITHIN):
        while await origin.given() - before < SHARED // 2:
            await asyncio.sleep(LOOK)
        os.kill(muster.agents[GANG - 1], signal.SIGKILL)
        while not all(_whole(nodes / f"node{number}") > held[number - 1] for number in range(1, GANG)):
            await asyncio.sleep(LOOK)
    lasted, given = (time.perf_counter() - began) * 1000, await origin.given() - before
    if (view := await muster.client.jobs.get(job.id)).phase is JobPhase.FAILED:
        raise ProgramError(f"{job.id} was over before all had the file: {view.summary}")
    await muster.client.jobs.stop(job.id, now=True)
    return lasted, given


def _whole(node: Path) -> int:
    """How many addresses a node knows all of: an agent writes that down once it has a file whole, hashed and synced."""
    return sum(1 for each in (node / "cache" / "inputs" / "sources").glob("*") if each.suffix == "")
