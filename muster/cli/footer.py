"""The last lines of a terminal while a job is followed: lines that user code has begun, and how the job stands."""

import asyncio
from collections.abc import Callable, Sequence

from muster.cli.output.screen import clear_status, draw_status

DRAW_PAUSE = 0.1
"""Seconds between two drawings, however often a progress bar is printed."""

STATUS_EVERY = 5
"""Drawings after which the status is asked for again."""


async def keep_footer(open_lines: Callable[[], Sequence[str]], status: Callable[[], str]) -> None:
    """Keep the footer up to date until cancelled, and then take it away."""
    told, drawings = "", 0
    try:
        while True:
            if drawings % STATUS_EVERY == 0:
                told = status()
            draw_status(*open_lines(), told)
            drawings += 1
            await asyncio.sleep(DRAW_PAUSE)
    finally:
        clear_status()
