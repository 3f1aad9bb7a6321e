"""What has to be done sooner or later is tried until it works."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import chain, repeat

from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError

log = logging.getLogger(__name__)

PAUSES = (0.2, 1.0, 5.0, 15.0)
"""Seconds between attempts to stop and clear away; the last one again and again."""


async def insist(execution: ExecutionId, act: Callable[[], Awaitable[None]]) -> None:
    """Do it again and again until it works: a daemon that is away comes back, a full disk gets space."""
    for pause in chain(PAUSES, repeat(PAUSES[-1])):
        try:
            await act()
        except (ExecutionError, OSError) as error:
            log.warning("cannot stop or clear away yet", extra={"execution": execution, "cause": str(error)})
            await asyncio.sleep(pause)
        else:
            return
