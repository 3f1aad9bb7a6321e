"""Outputs on their way to a store, beside plain obstore; the store is a web server that keeps nothing."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench.data.inputs import took
from bench.figures import Bar
from bench.fleet import READY_WITHIN, Fleet, gang
from bench.programs import ended_at_exit, finished, serving, start
from bench.scratch import PROGRAMS
from bench.setting import Setting, Turns
from muster.domain.data.output_terms import ALL_OUTPUTS, OutputTerms
from muster.domain.fleet.secret import SecretKind
from muster.domain.jobs.job import JobSpec

LEFT = 256_000_000
BUCKET, SECRET = "bench", "bench-store"
PUT_WITHIN = 120.0
FILE = "an output of 256 MB"
BARE, STORED = "a job that writes 256 MB and leaves none", f"a job with {FILE}, to a store"
PLAIN, OURS = f"{FILE}: plain obstore", f"{FILE}: what storing adds to a job"
PLAIN_BAR = Bar(figure=f"{FILE}, hashed: plain obstore / Muster", limit=0.9, at_least=True)


@asynccontextmanager
async def store(directory: Path) -> AsyncIterator[str]:
    """Where a store is that takes everything and keeps nothing, for as long as this lasts."""
    ready, log = directory / "store-address", directory / "store.log"
    async with ended_at_exit() as programs:
        programs.append(start([sys.executable, PROGRAMS / "store_sink.py", ready], log))
        yield await serving(programs[0], ready, log, READY_WITHIN)


async def measure_storing(setting: Setting, muster: Fleet, directory: Path) -> None:
    """A job that leaves a file for a store, one that writes it elsewhere, and plain obstore."""
    await setting.quiet(f"data: {FILE}, to a store")
    turns, terms = Turns(setting.repeats(3, 1)), OutputTerms(to=f"s3://{BUCKET}/runs", secret=SECRET)
    async with store(directory) as endpoint:
        values = {"endpoint": endpoint.encode(), "access-key-id": b"anybody", "secret-access-key": b"anything"}
        await muster.client.secrets.set(SECRET, values, kind=SecretKind.S3, replace=True)
        for _ in turns:
            bare = await _took(muster, _leaving(".", ALL_OUTPUTS))
            stored = await _took(muster, _leaving('"$MUSTER_OUTPUTS_DIR"', terms))
            turns.keep({BARE: bare, STORED: stored, OURS: stored - bare, PLAIN: await _plain(endpoint, directory)})
    for name, found in turns.found.items():
        setting.findings.take(name, found, "ms")
    setting.findings.ratio(PLAIN_BAR, PLAIN, OURS)


async def _took(muster: Fleet, spec: JobSpec) -> float:
    await asyncio.to_thread(os.sync)  # what was written before is on the disk
    return await took(muster, spec)


async def _plain(endpoint: str, directory: Path) -> float:
    """Milliseconds in which plain obstore sends as large a file."""
    await finished(["/bin/sh", "-c", _writing(str(directory))], PUT_WITHIN)
    await asyncio.to_thread(os.sync)
    file = directory / "left"
    found = float(await finished([sys.executable, PROGRAMS / "plain_put.py", endpoint, BUCKET, file], PUT_WITHIN))
    file.unlink()
    return found


def _leaving(where: str, terms: OutputTerms) -> JobSpec:
    return gang(1, "/bin/sh", "-c", _writing(where), spread=False, outputs=terms)


def _writing(where: str) -> str:
    """The script that writes the file into a directory."""
    return f"head -c {LEFT} /dev/zero > {where}/left"
