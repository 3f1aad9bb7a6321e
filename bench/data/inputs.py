"""Files on their way to one node, beside obstore and curl; and once more, for nothing."""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.data.origin import Origin
from bench.figures import Bar
from bench.fleet import Fleet, gang
from bench.programs import finished
from bench.scratch import PROGRAMS
from bench.setting import Setting, Turns
from muster.domain.data.code import JobCode
from muster.domain.data.job_input import JobInput
from muster.domain.jobs.job import JobSpec

GET_WITHIN = 120.0
LARGE = 256_000_000
FILE = "an input of 256 MB"
BARE, FRESH, HELD = (
    "a job without data",
    f"a job with {FILE}, from a web server",
    f"a job with {FILE} that its node has",
)
CODE = "a job with 20,000 files of code, shared, that its node has"
PLAIN, CURL, OURS = f"{FILE}: plain obstore", f"{FILE}: curl", f"{FILE}: what it adds to a job"
PLAIN_BAR = Bar(figure=f"{FILE}, hashed, on one node: plain obstore / Muster", limit=0.9, at_least=True)
CURL_BAR = Bar(figure=f"{FILE}, hashed, on one node: curl / Muster")
HELD_BAR = Bar(figure=f"{FILE} that the node has: over a job without data", limit=50, unit="ms")
CODE_BAR = Bar(figure="20,000 files of shared code that the node has: over a job without data", limit=50, unit="ms")
TWICE = f"{FILE}, two executions on a node, then another job: copies that the server gave"
TWICE_BAR = Bar(figure=TWICE, limit=1.02)


async def measure_one(setting: Setting, muster: Fleet, origin: Origin, code: JobCode, directory: Path) -> None:
    """One node: a file that nobody has fetched yet, the same once more, and a tree of code once more."""
    await setting.quiet(f"data: {FILE}, on one node")
    has_curl = setting.has("curl")
    turns, copies = Turns(setting.repeats(5, 2)), list[float]()
    for _ in turns:
        wanted = origin.fresh()
        before = await origin.given()
        bare = await took(muster, gang(2, "true", spread=False))
        fresh = await took(muster, gang(2, "true", spread=False, inputs=(wanted,)))
        held = await took(muster, gang(2, "true", spread=False, inputs=(wanted,)))
        copies.append((await origin.given() - before) / LARGE)
        shared = await took(muster, gang(2, "true", spread=False, code=code))
        turns.keep({BARE: bare, FRESH: fresh, HELD: held, CODE: shared, OURS: fresh - bare})
        get = [sys.executable, PROGRAMS / "plain_get.py", origin.url, _name(origin.fresh(), origin), directory / "got"]
        turns.keep({PLAIN: float(await finished(get, GET_WITHIN))})
        if has_curl:
            curl = ["curl", "-sS", "-o", directory / "got", "-w", "%{time_total}", origin.fresh().url]
            turns.keep({CURL: float(await finished(curl, GET_WITHIN)) * 1000})
        await asyncio.to_thread(os.sync)  # else the job of the next turn waits for what these have written
    for name, values in turns.found.items():
        setting.findings.take(name, values, "ms")
    setting.findings.take(TWICE, copies, "")
    setting.findings.ratio(PLAIN_BAR, PLAIN, OURS)
    setting.findings.ratio(CURL_BAR, CURL, OURS)
    setting.findings.excess(HELD_BAR, HELD, BARE)
    setting.findings.excess(CODE_BAR, CODE, BARE)
    setting.findings.absolute(TWICE_BAR, TWICE)


def _name(wanted: JobInput, origin: Origin) -> str:
    return wanted.url.removeprefix(f"{origin.url}/")


async def took(muster: Fleet, spec: JobSpec) -> float:
    """Milliseconds from the submit to the end of a job; the next one begins once all is quiet again."""
    return await all_took(muster, [spec])


async def all_took(muster: Fleet, specs: Sequence[JobSpec]) -> float:
    """Do the same for several jobs at once: milliseconds until all have ended."""
    began = time.perf_counter()
    jobs = [(await muster.client.jobs.submit(spec)).id for spec in specs]
    await asyncio.gather(*map(muster.ended, jobs))
    took = (time.perf_counter() - began) * 1000
    for job in jobs:
        await muster.settled(job)
    return took
