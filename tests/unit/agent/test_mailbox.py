"""What waits between an agent's loop and its link: when the coordinator hears of executions, and what is kept."""

import asyncio
from datetime import UTC, datetime

from agent.core.events import LogCompleted
from agent.mailbox import MOST_MESSAGES_WAITING, Inbox, Outbox
from muster.domain.gangs.plan import Report, Stage
from muster.domain.ids import ExecutionId
from muster.rpc.v1 import agents_pb2 as pb

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)


def of(rank: int, stage: Stage) -> Report:
    return Report(execution=ExecutionId(f"job-1-{rank}"), stage=stage, at=AT, address="10.0.0.7")


def told(message: pb.AgentMessage) -> list[tuple[str, str]]:
    return [(report.execution, pb.Stage.Name(report.stage)) for report in message.reports.reports]


async def turn() -> None:
    """One of the event loop."""
    await asyncio.sleep(0)


def sent(messages: "asyncio.Queue[pb.AgentMessage]") -> list[pb.AgentMessage]:
    """What is there to be written."""
    return [messages.get_nowait() for _ in range(messages.qsize())]


async def test_what_has_only_begun_is_told_with_what_follows() -> None:
    outbox = Outbox()
    messages = outbox.open()
    outbox.tell([of(0, Stage.PREPARING), of(1, Stage.PREPARING)])
    await turn()
    assert sent(messages) == []
    outbox.tell([of(0, Stage.PREPARED)])
    await turn()
    outbox.tell([of(1, Stage.ARMED)])
    await turn()
    assert [told(message) for message in sent(messages)] == [
        [("job-1-0", "STAGE_PREPARED"), ("job-1-1", "STAGE_PREPARING")],
        [("job-1-1", "STAGE_ARMED")],
    ]


async def test_what_comes_at_the_same_time_is_told_together() -> None:
    outbox = Outbox()
    messages = outbox.open()
    outbox.tell([of(0, Stage.RUNNING)])
    outbox.tell([of(0, Stage.ARMED), of(1, Stage.STOPPED)])
    outbox.tell([of(0, Stage.EXITED)])
    outbox.tell([of(2, Stage.RUNNING)])
    await turn()
    assert [told(message) for message in sent(messages)] == [
        [("job-1-0", "STAGE_EXITED"), ("job-1-1", "STAGE_STOPPED"), ("job-1-2", "STAGE_RUNNING")]
    ]


async def test_what_has_only_begun_is_told_soon_even_if_nothing_follows() -> None:
    outbox = Outbox()
    messages = outbox.open()
    for _ in range(2):
        outbox.tell([of(0, Stage.RUNNING)])
        assert told(await messages.get()) == [("job-1-0", "STAGE_RUNNING")]


async def test_without_a_stream_nothing_is_kept() -> None:
    """The next Hello tells everything, and what was meant for the stream before must not follow it."""
    outbox = Outbox()
    outbox.tell([of(0, Stage.EXITED)])
    await turn()
    messages = outbox.open()
    outbox.close()
    outbox.send(pb.AgentMessage())
    assert sent(messages) == []


async def test_a_coordinator_that_does_not_read_is_noticed() -> None:
    outbox = Outbox()
    outbox.open()
    for _ in range(MOST_MESSAGES_WAITING):
        outbox.send(pb.AgentMessage())
    assert not outbox.overflowed.is_set()
    outbox.send(pb.AgentMessage())
    assert outbox.overflowed.is_set()


async def test_events_are_taken_in_the_order_in_which_they_came() -> None:
    inbox = Inbox()
    first, second, third = (LogCompleted(execution=ExecutionId(f"job-1-{rank}")) for rank in range(3))
    inbox.put(first)
    inbox.put(second)
    assert list(await inbox.some()) == [first, second]
    inbox.put(third)
    assert list(await inbox.some()) == [third]
