"""A new attempt on the node on which the one before was: what it restores comes from the disk of the node."""

import asyncio
import os
import signal
import time
from datetime import timedelta
from pathlib import Path

from bench.figures import Bar
from bench.fleet import ENDED_WITHIN, Fleet, gang
from bench.setting import Setting, Turns
from muster.domain.data.checkpoint import JobCheckpoint
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.restart import RestartPolicy

SAVED = 64_000_000
RESTORED = "a checkpoint of 64 MB, user code killed: from the kill to the end of the next attempt on the same node"
FETCHED = "a checkpoint of 64 MB, restored on the same node while the depot is halted: bytes from the network"
RESTORED_BAR = Bar(figure=RESTORED, unit="s")
FETCHED_BAR = Bar(figure=FETCHED, limit=0)
WITHOUT_DEPOT = 30.0
"""Seconds for the attempt; one that needs the depot does not end within them, as nobody else has the checkpoint."""
SCRIPT = f"""
if test -n "$MUSTER_CHECKPOINT"; then test "$(stat -c %s "$MUSTER_CHECKPOINT/weights")" = {SAVED}; exit; fi
cd "$MUSTER_CHECKPOINT_DIR" && mkdir one.tmp && head -c {SAVED} /dev/urandom > one.tmp/weights
touch .one.finished && mv one.tmp one && echo $$ > "$0" && exec sleep 3600
"""
LOOK = 0.02


async def measure_restart(setting: Setting, muster: Fleet, depot: int, directory: Path) -> None:
    """User code that has saved is killed, and the next attempt restores what it saved; `depot` is its process id."""
    await setting.quiet("data: a checkpoint of 64 MB, stored, then restored on the same node")
    turns = Turns(setting.repeats(2, 1))
    for turn in turns:
        note = directory / f"pid-{turn}"
        job = (await muster.client.jobs.submit(_saving(note))).id
        async with asyncio.timeout(ENDED_WITHIN):
            while not note.exists() or not await _is_stored(muster, job):
                await asyncio.sleep(LOOK)
        os.kill(depot, signal.SIGSTOP)
        began = time.perf_counter()
        os.kill(int(note.read_text()), signal.SIGKILL)
        try:
            async with asyncio.timeout(WITHOUT_DEPOT):
                await muster.ended(job)
            fetched = 0
        except TimeoutError:
            fetched = SAVED
        finally:
            os.kill(depot, signal.SIGCONT)
        turns.keep({RESTORED: time.perf_counter() - began, FETCHED: float(fetched)})
        await muster.ended(job)
        await muster.settled(job)
    setting.findings.take(RESTORED, turns.found[RESTORED], "s")
    setting.findings.take(FETCHED, turns.found[FETCHED], "")
    setting.findings.absolute(RESTORED_BAR, RESTORED)
    setting.findings.absolute(FETCHED_BAR, FETCHED)


async def _is_stored(muster: Fleet, job: str) -> bool:
    return any(each.whole for each in (await muster.client.checkpoints.of(job)).checkpoints)


def _saving(note: Path) -> JobSpec:
    """A job that saves once, says that it has in a file, and waits; restored, it only looks at what there is."""
    checkpoint = JobCheckpoint(settle=timedelta(minutes=10))
    spec = gang(1, "/bin/sh", "-c", SCRIPT, note, spread=False, checkpoint=checkpoint)
    return JobSpec(name=spec.name, roles=spec.roles, restarts=RestartPolicy(limit=1))
