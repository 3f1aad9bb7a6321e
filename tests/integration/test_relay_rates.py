"""A relay that slows accounts down."""

import asyncio
from pathlib import Path

from muster.domain.attachments.frame import LARGEST_CHANNEL_DATA
from tests.integration.relays import site_with_relay


async def test_an_account_that_has_said_much_waits_and_another_does_not(tmp_path: Path) -> None:
    async with site_with_relay(tmp_path, "--relay-rate", "1") as it:
        other, its_agent = await it.pair("other", account="ben")
        pairs = [await it.pair(f"a{number}") for number in range(40)]
        for client, _ in pairs:
            await client.write(bytes(LARGEST_CHANNEL_DATA))
        for _, agent in pairs:
            assert await agent.read() == bytes(LARGEST_CHANNEL_DATA)
        waiting = []
        for client, agent in pairs:
            await client.write(b"more")
            waiting.append(asyncio.ensure_future(agent.read()))
        for _ in range(20):
            await other.write(b"one word")
            assert await its_agent.read() == b"one word"
        assert not all(each.done() for each in waiting)
