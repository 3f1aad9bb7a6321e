"""Garbage that refers to itself is looked for when there is little else to do.

By itself Python looks once there are so many more objects than at its last look: just while thousands of agents are
told something. Then it looks at all that was made since, and with thousands of nodes that is much, as each heartbeat
makes anew what its stream waits with: a tenth of a second, several times for a gang of all of them.
"release barrier, 5,000 agents, mTLS" of `make bench ONLY=scale` pays for this.
"""

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

MORE = (100_000, 20, 20)
"""More objects than that, looks at the newest, and looks at younger ones, before Python looks all the same."""
LOOK = 0.5
"""Seconds of one look at how busy the event loop is."""
BUSY = 0.3
"""Share of them for which it works if it is; heartbeats of 5,000 nodes take half of that."""


@contextmanager
def not_looked_for() -> Iterator[None]:
    """Nothing is looked for while a start makes what stays; the looks were half of the time that loading took."""
    looked = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if looked:
            gc.enable()


def collect_seldom() -> None:
    """Look after many new objects, and never among what the start has made; counts from here on."""
    gc.freeze()
    gc.set_threshold(*MORE)


def collect_new() -> None:
    """Look at what was made since the last looks."""
    gc.collect(1)


async def tidy(
    used: Callable[[], float] = time.thread_time, collect: Callable[[], None] = collect_new, look: float = LOOK
) -> None:
    """Look whenever much has happened and it has become quiet again; until cancelled.

    `used`: seconds that the event loop has worked.
    """
    before, much = used(), False
    while True:
        await asyncio.sleep(look)
        now = used()
        busy, before = now - before > BUSY * look, now
        if much and not busy:
            collect()
            before = used()
        much = busy
