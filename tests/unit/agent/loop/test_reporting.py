"""When the coordinator hears of executions."""

import asyncio
from datetime import UTC, datetime

from agent.loop.reporting import Reporting
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


async def test_what_has_only_begun_is_told_with_what_follows() -> None:
    sent: list[pb.AgentMessage] = []
    reporting = Reporting(sent.append)
    reporting.tell([of(0, Stage.PREPARING), of(1, Stage.PREPARING)])
    await turn()
    assert sent == []
    reporting.tell([of(0, Stage.PREPARED)])
    await turn()
    reporting.tell([of(1, Stage.ARMED)])
    await turn()
    assert [told(message) for message in sent] == [
        [("job-1-0", "STAGE_PREPARED"), ("job-1-1", "STAGE_PREPARING")],
        [("job-1-1", "STAGE_ARMED")],
    ]


async def test_what_comes_at_the_same_time_is_told_together() -> None:
    sent: list[pb.AgentMessage] = []
    reporting = Reporting(sent.append)
    reporting.tell([of(0, Stage.RUNNING)])
    reporting.tell([of(0, Stage.ARMED), of(1, Stage.STOPPED)])
    reporting.tell([of(0, Stage.EXITED)])
    reporting.tell([of(2, Stage.RUNNING)])
    await turn()
    assert [told(message) for message in sent] == [
        [("job-1-0", "STAGE_EXITED"), ("job-1-1", "STAGE_STOPPED"), ("job-1-2", "STAGE_RUNNING")]
    ]


async def test_what_has_only_begun_is_told_soon_even_if_nothing_follows() -> None:
    sent: asyncio.Queue[pb.AgentMessage] = asyncio.Queue()
    reporting = Reporting(sent.put_nowait)
    for _ in range(2):
        reporting.tell([of(0, Stage.RUNNING)])
        assert told(await sent.get()) == [("job-1-0", "STAGE_RUNNING")]
