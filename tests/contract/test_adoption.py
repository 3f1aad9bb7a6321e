"""What an agent knows of executions that an earlier one started."""

import asyncio
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.attach.companion import Companion
from agent.attach.relayed.attachments import NotAttachableError
from agent.core.door.packets import CommandWanted, GangOutput
from agent.executions.layout import EXECUTION_RECORD, ExecutionDirectory
from agent.executions.ports import PortLedger
from agent.executions.record import ExecutionRecord, note, noted
from agent.logs.spool import LogSpool
from agent.loop.live_execution import LiveExecution
from agent.runtimes.process.launcher import Launcher
from agent.runtimes.process.record import read_record
from agent.runtimes.process.runtime import ProcessRuntime
from agent.runtimes.process.spares import SpareSupervisors
from muster.domain.gangs.plan import Stage
from muster.domain.gangs.roster import PortLease
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import PortRequest, RuntimeKind
from tests.contract.lone_loop import LoneLoop
from tests.contract.runtimes import MARK, directory_for, running
from tests.contract.survivors import mortal_agent

MASTER = PortLease(name="master", host_port=30_180, container_port=30_180)
RECORD = ExecutionRecord(job="trial", attempt=2, rank=3, address="10.0.0.7", ports=(MASTER,))
NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_a_record_comes_back_as_it_was_written(tmp_path: Path) -> None:
    directory = directory_for(tmp_path, ExecutionId("a-1-0"))
    note(directory, RECORD)
    assert noted(directory) == RECORD
    started = replace(RECORD, started_at=NOON)
    note(directory, started)
    assert noted(directory) == started


async def test_when_user_code_was_started_is_noted(tmp_path: Path) -> None:
    directory = directory_for(tmp_path, ExecutionId("a-1-0"))
    with closing(LogSpool(directory.log)) as spool:
        await LiveExecution(RuntimeKind.PROCESS, directory, spool, record=RECORD).note_start(NOON)
    assert noted(directory) == replace(RECORD, started_at=NOON)


@pytest.mark.parametrize("text", [None, "", "{}", "[]", '{"job": "trial"'])
def test_a_record_that_is_missing_or_damaged_is_none(tmp_path: Path, text: str | None) -> None:
    directory = directory_for(tmp_path, ExecutionId("a-1-0"))
    if text is not None:
        (directory.path / EXECUTION_RECORD).write_text(text)
    assert noted(directory) is None


async def test_an_adopted_execution_has_its_address_ports_and_start_again(tmp_path: Path) -> None:
    async with mortal_agent(tmp_path, "sleep 1000") as agent:
        await agent.start()
    [path] = (tmp_path / "executions").iterdir()
    directory = ExecutionDirectory(path.parent, ExecutionId(path.name))
    note(directory, replace(RECORD, started_at=NOON))
    ports = PortLedger(30_180, 30_189)
    runtime = ProcessRuntime(spares=SpareSupervisors(Launcher(), wanted=0))
    lone = LoneLoop(tmp_path, path.parent, {RuntimeKind.PROCESS: runtime}, ports, "10.0.0.8")
    await lone.loop.recover()
    [report] = lone.state.ledger.reports()
    assert (report.stage, report.address, report.ports, report.started_at) == (
        Stage.RUNNING,
        "10.0.0.7",
        (MASTER,),
        NOON,
    )
    with pytest.raises(ExecutionError, match=f"port 30180 is taken by execution {path.name}") as caught:
        ports.hold(ExecutionId("other-1-0"), (PortRequest(name="http", port=30_180),))
    assert caught.value.kind is FailureKind.PORT_TAKEN
    await lone.loop.shut_down(stop=True)
    assert running(ExecutionId(path.name)) == []
    assert await runtime.recover(path.parent) == []
    await runtime.close()


async def test_what_runs_on_terms_that_nobody_knows_is_ended_and_said_to_be_lost(tmp_path: Path) -> None:
    """Left alone, the execution would run on beside the next attempt when the node is cut off."""
    async with mortal_agent(tmp_path, "setsid sleep 1000 & wait") as agent:
        await agent.start()
    [path] = (tmp_path / "executions").iterdir()
    (path / EXECUTION_RECORD).write_bytes(b"\0" * 300)
    runtime = ProcessRuntime(spares=SpareSupervisors(Launcher(), wanted=0))
    lone = LoneLoop(tmp_path, path.parent, {RuntimeKind.PROCESS: runtime}, PortLedger(30_180, 30_189), "10.0.0.8")
    await lone.loop.recover()
    running_loop = asyncio.create_task(lone.loop.run(), name="loop")
    while (report := await lone.told()).stage is not Stage.EXITED:
        pass
    assert running(ExecutionId(path.name)) == []
    assert report.failure is not None
    assert (report.failure.kind, "execution.json" in report.failure.message) == (FailureKind.NODE_LOST, True)
    assert (tmp_path / "damaged" / f"{path.name}-{EXECUTION_RECORD}").read_bytes() == b"\0" * 300
    running_loop.cancel()
    await asyncio.wait([running_loop])
    await lone.loop.shut_down(stop=True)
    await runtime.close()


async def test_an_agent_attaches_to_what_an_earlier_one_started_until_that_has_ended(tmp_path: Path) -> None:
    async with mortal_agent(tmp_path, "echo $$; sleep 1000 & wait") as agent:
        await agent.start()
    [path] = (tmp_path / "executions").iterdir()
    execution = ExecutionId(path.name)
    runtime = ProcessRuntime(spares=SpareSupervisors(Launcher(), wanted=0))
    lone = LoneLoop(tmp_path, path.parent, {RuntimeKind.PROCESS: runtime}, PortLedger(30_180, 30_189), "10.0.0.8")
    await lone.loop.recover()
    with pytest.raises(NotAttachableError, match="just starting"):
        await lone.loop.companion(execution)
    running_loop = asyncio.create_task(lone.loop.run(), name="loop")
    companion = await _attached(lone, execution)
    assert await lone.loop.companion(execution) is companion
    command = await companion.run(CommandWanted(number=0, words=("sh", "-c", f"echo ${MARK}")))
    assert await command.read() == GangOutput(data=execution.encode() + b"\n")
    command.close()
    record = read_record(path)
    assert record is not None
    assert record.program is not None
    record.program.kill()
    while (await lone.told()).stage is not Stage.EXITED:
        pass
    assert running(execution) == []
    with pytest.raises(NotAttachableError, match="has ended"):
        await lone.loop.companion(execution)
    running_loop.cancel()
    await asyncio.wait([running_loop])
    await lone.loop.shut_down(stop=True)
    assert running(execution) == []
    await runtime.close()


async def _attached(lone: LoneLoop, execution: ExecutionId) -> Companion:
    """The companion, as soon as the loop works."""
    while True:
        try:
            return await lone.loop.companion(execution)
        except NotAttachableError:
            await asyncio.sleep(0)
