"""The follower of samples: hears once what all nodes use, for everything in the console that wants to know."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing

from muster.client.client import Client
from muster.domain.errors import MusterError
from muster.domain.telemetry.sample import NodeSample

log = logging.getLogger(__name__)

SAMPLES_FOLLOWED_AGAIN = 5.0
"""Seconds until samples are followed again after that went wrong."""


async def follow_samples(client: Client, hear: Sequence[Callable[[Sequence[NodeSample]], None]]) -> None:
    """Have others hear of samples until cancelled, whatever becomes of the coordinator.

    `client` asks with the console's own token.
    """
    said = ""
    while True:
        try:
            async with aclosing(client.telemetry.follow_nodes()) as batches:
                async for batch in batches:
                    for each in hear:
                        each(batch)
        except MusterError as error:
            if str(error) != said:
                log.warning("nobody tells the console what nodes use", extra={"cause": str(error)})
            said = str(error)
        await asyncio.sleep(SAMPLES_FOLLOWED_AGAIN)
