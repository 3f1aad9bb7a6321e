"""Somebody leaves a shell that is kept, and comes back to it: also after another agent has taken the node over."""

import asyncio
from pathlib import Path

from muster.domain.attachments.frame import (
    AttachmentEnded,
    AttachmentOpened,
    AttachmentOutput,
    AttachmentTrouble,
)
from muster.domain.attachments.request import CommandRequest
from tests.integration.attaching import KEPT, WITHIN, attaching_fleet, ended, typed


async def test_a_kept_shell_goes_on_when_it_is_left_and_shows_again_what_it_showed(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()
        async with await fleet.client.attachments.open(job.id, KEPT) as first:
            await typed(first, b"word=kept; echo $((6 * 7)) of them\n", b"42 of them\r\n")
        async with await fleet.client.attachments.open(job.id, KEPT) as again:
            await typed(again, b"echo $word; echo $((3 * 3)) times; exit 5\n", b"42 of them\r\n")
            output, end = await asyncio.wait_for(ended(again), WITHIN)

        assert b"kept\r\n9 times\r\n" in output
        assert end == AttachmentEnded(code=5)


async def test_whoever_comes_to_a_kept_shell_takes_it_over(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()
        async with await fleet.client.attachments.open(job.id, KEPT) as first:
            await typed(first, b"echo $((6 * 7)) of them\n", b"42 of them\r\n")
            async with await fleet.client.attachments.open(job.id, KEPT) as second:
                _, end = await asyncio.wait_for(ended(first), WITHIN)
                await typed(second, b"echo $((3 * 3)) times\n", b"9 times\r\n")

        assert (end.trouble, end.text) == (AttachmentTrouble.TAKEN_OVER, "somebody else has attached here")


async def test_a_kept_shell_outlives_its_agent_and_what_is_not_kept_does_not(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job = await fleet.running()
        async with await fleet.client.attachments.open(job.id, KEPT) as first:
            await typed(first, b"word=kept; echo $((6 * 7)) of them\n", b"42 of them\r\n")
            other = CommandRequest(words=("sh", "-c", "echo $$; exec sleep 1000"))
            async with await fleet.client.attachments.open(job.id, other) as sleeping:
                assert await sleeping.receive() == AttachmentOpened()
                said = await sleeping.receive()
                assert isinstance(said, AttachmentOutput)
                await fleet.kill("agent")
        await fleet.start_agent()
        async with await fleet.client.attachments.open(job.id, KEPT) as again:
            line = b"echo $word; kill -0 %d || echo $((3 * 3)) times; exit 6\n" % int(said.data)
            await typed(again, line, b"9 times\r\n")
            _, end = await asyncio.wait_for(ended(again), WITHIN)

        assert end == AttachmentEnded(code=6)
