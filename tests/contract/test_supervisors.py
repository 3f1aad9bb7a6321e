"""What supervisors do after their program, and with what a program leaves behind."""

import asyncio
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from agent.runtimes.kernel.pids import Process
from agent.runtimes.process.launcher import Launcher
from agent.runtimes.process.record import read_record
from agent.runtimes.process.runtime import ProcessRuntime
from agent.runtimes.process.spares import SpareSupervisors
from muster.domain.fleet.secret import Handover
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import Role
from tests.contract.runtimes import ProcessPlace, Trial, running, shell, trial
from tests.contract.survivors import launched, over, prepared


@pytest.fixture
def place(tmp_path: Path) -> ProcessPlace:
    return ProcessPlace(tmp_path)


async def test_a_supervisor_that_is_done_does_something_else_next(tmp_path: Path) -> None:
    runtime = ProcessRuntime(spares=SpareSupervisors(Launcher(), wanted=0))
    found: list[Process] = []
    for number in range(3):
        async with launched(runtime, tmp_path, f"echo {number} $PWD; exit {number}") as it:
            found.append(supervisor_of(it))
            assert await it.end() == Exit(code=number)
            assert it.printed() == [f"{number} {it.directory.work}".encode()]
    assert found == [found[0]] * 3
    await runtime.close()
    await over(found[0])


async def test_a_supervisor_that_knows_secrets_does_nothing_else(tmp_path: Path) -> None:
    runtime = ProcessRuntime(spares=SpareSupervisors(Launcher(), wanted=0))
    async with prepared(runtime, tmp_path, "exit 0") as it:
        await it.sandbox.arm(replace(it.launch, secrets=Handover(masked=(b"hush",))))
        await it.sandbox.start()
        first = supervisor_of(it)
        assert await it.end() == Exit(code=0)
        await it.sandbox.remove()
        await over(first)
    async with launched(runtime, tmp_path, "exit 3") as it:
        assert supervisor_of(it) != first
        assert await it.end() == Exit(code=3)
    await runtime.close()


def supervisor_of(it: Trial) -> Process:
    record = read_record(it.directory.path)
    assert record is not None
    return record.supervisor


@pytest.mark.parametrize(
    "script",
    [
        "true & wait",
        "setsid --wait true",
        "sleep 1000 >/dev/null 2>&1 &",
        "(setsid sh -c 'exec sleep 1000 >/dev/null 2>&1' &)",
    ],
)
async def test_a_record_that_is_complete_tells_that_nothing_is_left(
    place: ProcessPlace, tmp_path: Path, script: str
) -> None:
    async with trial(place, tmp_path, Role(command=shell(script))) as it:
        assert await it.run() == Exit(code=0)
        record = read_record(it.directory.path)
        assert record is not None
        assert (record.complete, record.alone) == (True, True)
        assert running(it.sandbox.execution) == []


async def test_orphans_of_a_program_do_not_pile_up_while_it_runs(place: ProcessPlace, tmp_path: Path) -> None:
    script = "for i in 1 2 3 4 5 6 7 8; do (true &); done; echo made; exec sleep 1000"
    async with trial(place, tmp_path, Role(command=shell(script))) as it:
        await it.release()
        await it.says(b"made")
        own = psutil.Process(supervisor_of(it).pid)
        while len(own.children()) > 1:  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0)
