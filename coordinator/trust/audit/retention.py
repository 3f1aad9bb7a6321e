"""How long entries of the audit log are kept."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from coordinator.trust.registry import Registry
from muster.domain.errors import MusterError

log = logging.getLogger(__name__)

PRUNE_EVERY = 3600.0
"""Seconds between two looks for entries that are too old."""


class Exported(Protocol):
    """Somebody who hands entries on."""

    number: int
    """The last entry that was handed on; younger ones are not removed."""


async def prune_seldom(
    registry: Registry, keep: timedelta, exports: Sequence[Exported], now: Callable[[], datetime]
) -> None:
    """Remove entries that are older than that, once an hour, until cancelled; what was not exported stays."""
    while True:
        most = min((each.number for each in exports), default=None)
        try:
            removed = await registry.prune_audit(now() - keep, most, now())
        except MusterError as error:
            log.warning("old entries of the audit log cannot be removed", extra={"cause": str(error)})
        else:
            if removed:
                log.info("old entries of the audit log were removed", extra={"entries": removed})
        await asyncio.sleep(PRUNE_EVERY)
