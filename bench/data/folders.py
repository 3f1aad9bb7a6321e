"""Folders on their way to the depot: reading 20,000 files, sending what is new, and whether others notice."""

import asyncio
import os
import shutil
import time
from pathlib import Path

from bench.data.depot import UPLOAD_WITHIN, upload
from bench.figures import Bar
from bench.fleet import Fleet
from bench.programs import finished
from bench.setting import Setting, Turns
from muster.transfer.folder import read_folder
from muster.transfer.remembered import UNSETTLED_NS

FILES, EACH = 20_000, 4_100
"""Files of the folder, and bytes of each: 82 MB."""
FEW = 500
"""Files of a folder that is new each time."""
CHANGED = 3
PER_DIRECTORY = 200
SENDERS, SENT = 4, 64_000_000
"""Folders that are sent side by side, and bytes of each."""
PAUSE = 0.01
"""Seconds between two calls of the one who asks meanwhile."""
SETTLES = UNSETTLED_NS / 1e9 + 0.1
"""Seconds after which a file that was changed is known for good once it was read."""
_WHOLE = "whole"
"""The file of a folder that says that all others are there."""
FOLDER = f"a folder of {FILES:,} files, 82 MB"
READ, AGAIN = f"{FOLDER}: read and hashed", f"{FOLDER}: `muster upload`, nothing changed"
SOME = f"{FOLDER}: `muster upload`, {CHANGED} files changed"
ONCE = f"{FOLDER}: `muster upload`, nothing changed, for the first time after a change"
FIRST = f"{FOLDER}: `muster upload`, all new"
FIRST_BAR = Bar(figure=FIRST, unit="s")
READ_BAR = Bar(figure=READ, limit=3, unit="s")
AGAIN_BAR = Bar(figure=AGAIN, limit=1, unit="s")
SOME_BAR = Bar(figure=SOME, unit="s")
SENT_BAR = Bar(figure=f"{FOLDER}, {CHANGED} files changed: bytes sent / bytes of these files and the list of all")
NEW, COPIED = f"a new folder of {FEW:,} files: `muster upload`", f"a new folder of {FEW:,} files: rsync and sync"
NEW_BAR = Bar(figure=f"{NEW} / rsync to another directory and sync")
LONGEST = f"the coordinator's longest call while {SENDERS} folders of 64 MB are sent"
LONGEST_BAR = Bar(figure=LONGEST, limit=50, unit="ms")
ALONE = "the coordinator's longest call of as many, with nobody sending"


def kept_folder(folder: Path, files: int) -> Path:
    """A folder of so many files, which an earlier run may have made: what makes and removes many pays for it later."""
    if not (folder / _WHOLE).exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder_of(folder, files)
        (folder / ".musterignore").write_text(f".musterignore\n{_WHOLE}\n")
        (folder / _WHOLE).touch()
    return folder


def folder_of(folder: Path, files: int) -> Path:
    """A folder of so many files, none of which anybody has seen."""
    for number in range(files):
        directory = folder / f"d{number // PER_DIRECTORY}"
        if number % PER_DIRECTORY == 0:
            directory.mkdir(parents=True)
        (directory / f"f{number}").write_bytes(os.urandom(EACH))
    return folder


async def measure_sending(setting: Setting, muster: Fleet, folder: Path, cache: Path) -> None:
    """Reading a folder, sending it again, and sending a small one that is new, beside rsync; `folder` was sent once."""
    await setting.quiet(f"data: {FOLDER}")
    turns = Turns(setting.repeats(5, 2))
    has_rsync = setting.has("rsync")
    sent = list[float]()
    for turn in turns:
        began = time.perf_counter()
        read = await asyncio.to_thread(read_folder, folder, now_ns=time.time_ns())
        turns.keep({READ: time.perf_counter() - began})
        turns.keep({AGAIN: (await upload(muster, cache, folder)).took / 1000})
        for number in range(CHANGED):
            (folder / "d0" / f"f{number}").write_bytes(os.urandom(EACH))
        some = await upload(muster, cache, folder)
        turns.keep({SOME: some.took / 1000})
        await asyncio.sleep(SETTLES)
        turns.keep({ONCE: (await upload(muster, cache, folder)).took / 1000})
        sent.append(some.sent / (CHANGED * EACH + len(read.tree.form)))
        few = folder_of(cache / f"few{turn}", FEW)
        if has_rsync:
            began = time.perf_counter()
            await finished(["rsync", "-a", f"{few}/", cache / f"copy{turn}"], UPLOAD_WITHIN)
            await asyncio.to_thread(os.sync)
            turns.keep({COPIED: time.perf_counter() - began})
        turns.keep({NEW: (await upload(muster, cache, few)).took / 1000})
        shutil.rmtree(few)
    for name, values in turns.found.items():
        setting.findings.take(name, values, "s")
    setting.findings.take(SENT_BAR.figure, sent, "")
    for bar, name in ((READ_BAR, READ), (AGAIN_BAR, AGAIN), (SOME_BAR, SOME), (SENT_BAR, SENT_BAR.figure)):
        setting.findings.absolute(bar, name)
    setting.findings.ratio(NEW_BAR, NEW, COPIED)


async def measure_calls(setting: Setting, muster: Fleet, directory: Path) -> None:
    """How long the coordinator lets others wait while large folders go to the depot."""
    await setting.quiet(f"data: {SENDERS} folders of 64 MB are sent, and one caller asks")
    turns = Turns(setting.repeats(5, 2))
    for turn in turns:
        folders = [directory / f"{turn}-{number}" for number in range(SENDERS)]
        for folder in folders:
            folder.mkdir(parents=True)
            (folder / "weights").write_bytes(os.urandom(SENT))
        sending = asyncio.gather(*(upload(muster, directory / "cache", folder) for folder in folders))
        waits = list[float]()
        try:
            while not sending.done():
                waits.append(await _asked(muster))
        finally:
            await sending
        turns.keep({LONGEST: max(waits), ALONE: max([await _asked(muster) for _ in waits])})
        for folder in folders:
            shutil.rmtree(folder)
    for name, values in turns.found.items():
        setting.findings.take(name, values, "ms")
    setting.findings.absolute(LONGEST_BAR, LONGEST)


async def _asked(muster: Fleet) -> float:
    """Milliseconds of one call; the pause after it is not counted."""
    began = time.perf_counter()
    await muster.client.jobs.page()
    took = (time.perf_counter() - began) * 1000
    await asyncio.sleep(PAUSE)
    return took
