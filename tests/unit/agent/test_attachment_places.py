"""How many attachments a node serves at a time, and what becomes of one more."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import cast

from agent.attach.companion import Companion
from agent.attach.kept.main_program import MainProgram
from agent.attach.kept.shells import KeptShells
from agent.attach.relayed.attachments import (
    MOST_ATTACHED,
    PLACE_WITHIN,
    NotAttachableError,
    RelayedAttachments,
    RelayStream,
)
from agent.attach.relayed.launches import LaunchesFirst
from agent.attach.relayed.usage import Usage
from muster.carrying.carrier import LEAVE_LIMIT
from muster.domain.attachments.request import AttachmentOrder, AttachmentReport, CommandRequest
from muster.domain.ids import ExecutionId
from tests.unit.leaping_time import run_leaping

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
RESUME_WITHIN = 60.0
LAST_WORD = PLACE_WITHIN + RESUME_WITHIN + LEAVE_LIMIT
"""Seconds after which a refused attachment of which nobody hears is given up."""
ENDED = "the execution has ended"


class SilentStream:
    """A stream to a relay at which the other side does not come."""

    async def read(self) -> object:
        return await asyncio.get_running_loop().create_future()

    async def write(self, _: object) -> None:
        """Take a message."""

    async def done_writing(self) -> None:
        """Take that there is no more."""

    def cancel(self) -> bool:
        return True


class SilentRelay:
    """The way to that relay."""

    def dial(self, _relay: str, _ticket: str) -> RelayStream:
        return cast("RelayStream", SilentStream())

    async def close(self) -> None:
        """Have nothing to close."""


class PreparedSite:
    """Executions of which no companion comes; all attachments wait for one until `end`."""

    def __init__(self) -> None:
        self._ended = asyncio.Event()
        self.asked = 0

    def end(self) -> None:
        self._ended.set()

    async def companion(self, _: ExecutionId) -> Companion:
        self.asked += 1
        await self._ended.wait()
        raise NotAttachableError(ENDED)

    async def main_program(self, _: ExecutionId) -> MainProgram:
        raise NotAttachableError(ENDED)

    def kept_shells(self, _: ExecutionId) -> KeptShells | None:
        return None

    async def how_it_ended(self, _: ExecutionId) -> str | None:
        return None


def order(number: int) -> AttachmentOrder:
    return AttachmentOrder(
        attachment=f"a{number}",
        execution=ExecutionId("j-1-0"),
        request=CommandRequest(words=("cat",)),
        relay="relay:7462",
        ticket="",
        resume_within=timedelta(seconds=RESUME_WITHIN),
        who="anna",
        token="",
        since=NOW,
        about="cat",
    )


class Reports:
    """What the coordinator is told, with the seconds at which it is."""

    def __init__(self) -> None:
        self.told: dict[str, tuple[str, float]] = {}

    def take(self, report: AttachmentReport) -> bool:
        self.told[report.attachment] = report.text, asyncio.get_running_loop().time()
        return True


def test_one_attachment_too_many_waits_for_a_place_and_is_refused_then() -> None:
    async def served() -> tuple[int, dict[str, tuple[str, float]]]:
        site, reports = PreparedSite(), Reports()
        attachments = RelayedAttachments(site, SilentRelay(), reports.take, Usage(), LaunchesFirst(lambda: 0.0))
        for number in range(MOST_ATTACHED + 1):
            attachments.begin(order(number))
        await asyncio.sleep(LAST_WORD + 1.0)
        asked, told = site.asked, dict(reports.told)
        await attachments.close()
        return asked, told

    asked, told = run_leaping(served())

    assert asked == MOST_ATTACHED
    text = "1000 attachments to the executions of this node are open; end some of them"
    assert told == {f"a{MOST_ATTACHED}": (text, LAST_WORD)}


def test_one_attachment_too_many_has_the_place_of_one_that_ends_in_time() -> None:
    async def served() -> dict[str, tuple[str, float]]:
        site, reports = PreparedSite(), Reports()
        attachments = RelayedAttachments(site, SilentRelay(), reports.take, Usage(), LaunchesFirst(lambda: 0.0))
        for number in range(MOST_ATTACHED + 1):
            attachments.begin(order(number))
        await asyncio.sleep(PLACE_WITHIN - 1.0)
        site.end()
        await asyncio.sleep(RESUME_WITHIN + 1.0)
        await attachments.close()
        return reports.told

    told = run_leaping(served())

    assert {text for text, _ in told.values()} == {ENDED}
    assert len(told) == MOST_ATTACHED + 1
