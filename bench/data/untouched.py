"""Jobs without data keys: as fast on a node that moves data for others as on one that never has."""

import asyncio
import os
import time

from bench.figures import Bar
from bench.fleet import Fleet, gang
from bench.programs import cpu_seconds
from bench.setting import Setting, Turns

NEVER, MOVES = "node1", "node2"
"""The node that never gets a job with data, and the one that gets all of them."""
SIZE, BURST = 8, 8
"""Executions of a gang, and gangs one after the other."""
WITHOUT = f"{BURST} gangs of {SIZE} without data, on a node that never had data"
AFTER = f"{BURST} gangs of {SIZE} without data, on a node that has moved data"
AFTER_BAR = Bar(
    figure=f"{BURST} gangs of {SIZE} without data: on a node that has moved data / that never had", limit=1.03
)
WITHOUT_CPU, AFTER_CPU = f"{WITHOUT}: CPU of its agent", f"{AFTER}: CPU of its agent"
CPU_BAR = Bar(
    figure=f"{BURST} gangs of {SIZE} without data: CPU of the agent that has moved data / that never had", limit=1.03
)


async def only(muster: Fleet, node: str) -> None:
    """Have jobs placed on one of both nodes alone."""
    await muster.client.nodes.uncordon(node)
    await muster.client.nodes.cordon(MOVES if node == NEVER else NEVER, reason="the other one is measured")


async def measure_without_data(setting: Setting, muster: Fleet) -> None:
    """Gangs without data on both nodes in turns, after one of them has had all jobs with data."""
    await setting.quiet("data: gangs without data, on a node that has moved data and on one that has not")
    await asyncio.to_thread(os.sync)  # what was written for the data of others is on the disk
    turns = Turns(setting.repeats(5, 2))
    for turn in turns:
        nodes = ((NEVER, WITHOUT, WITHOUT_CPU), (MOVES, AFTER, AFTER_CPU))
        for node, wall, used in nodes if turn % 2 else reversed(nodes):
            await only(muster, node)
            took, cpu = await _burst(muster, node)
            turns.keep({wall: took, used: cpu})
    for name, values in turns.found.items():
        setting.findings.take(name, values, "ms")
    setting.findings.ratio(AFTER_BAR, AFTER, WITHOUT)
    setting.findings.ratio(CPU_BAR, AFTER_CPU, WITHOUT_CPU)


async def _burst(muster: Fleet, node: str) -> tuple[float, float]:
    """Milliseconds of some gangs, one after the other, and of CPU of the agent, with what is cleared up after them."""
    agent = muster.agents[(NEVER, MOVES).index(node)]
    spec, began, used = gang(SIZE, "true", spread=False), time.perf_counter(), cpu_seconds(agent)
    for _ in range(BURST):
        job = (await muster.client.jobs.submit(spec)).id
        await muster.ended(job)
    took = time.perf_counter() - began
    await muster.settled(job)
    return took * 1000, (cpu_seconds(agent) - used) * 1000
