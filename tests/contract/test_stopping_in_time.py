"""Signals that a job wants, the rest of a grace, and what user code tells its agent, in every runtime."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agent.executions.status import last_checkpoint
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import Role
from muster.domain.jobs.stopping.preemption import PreemptSignal
from tests.contract.runtime_places import PLACES, place_of
from tests.contract.runtimes import GRACE, Place, running, shell, trial

AT_ONCE = timedelta(seconds=0.3)
"""Grace for programs that do not take it anyway."""


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of(request, tmp_path)


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """Where other users get to as well; pytest's own is closed to them."""
    with TemporaryDirectory(dir="/var/tmp", prefix="muster-test-") as directory:
        Path(directory).chmod(0o711)
        yield Path(directory)


def script(text: str) -> Role:
    return Role(command=shell(text))


async def test_user_code_gets_the_signal_that_its_job_wants(place: Place, tmp_path: Path) -> None:
    text = "trap 'exit 9' TERM; trap 'echo saved; exit 7' USR1; echo ready; while :; do sleep 0.05; done"
    async with trial(place, tmp_path, script(text)) as it:
        await it.release()
        await it.says(b"ready")
        await it.sandbox.stop(GRACE, PreemptSignal.USR1)
        assert running(it.sandbox.execution) == []
        assert await it.end() == Exit(code=7)
        assert it.printed() == [b"ready", b"saved"]


async def test_a_program_that_got_its_signal_before_is_only_killed_after_the_grace(
    place: Place, tmp_path: Path
) -> None:
    text = "trap 'echo TERM' TERM; trap 'echo USR1' USR1; echo ready; while :; do sleep 0.05; done"
    async with trial(place, tmp_path, script(text)) as it:
        await it.release()
        await it.says(b"ready")
        await it.sandbox.stop(AT_ONCE, None)
        assert running(it.sandbox.execution) == []
        assert await it.end() == Exit(code=137)
        assert it.printed() == [b"ready"]


async def test_a_program_that_ends_without_another_signal_is_not_waited_for_any_longer(
    place: Place, tmp_path: Path
) -> None:
    async with trial(place, tmp_path, script("echo ready; sleep 0.5; exit 3")) as it:
        await it.release()
        await it.says(b"ready")
        await it.sandbox.stop(GRACE, None)
        assert await it.end() == Exit(code=3)


async def test_what_user_code_tells_of_its_checkpoints_is_seen_by_its_agent(place: Place, tmp_path: Path) -> None:
    async with trial(place, tmp_path, script('echo saved > "$STATUS/checkpoints"')) as it:
        it.launch = replace(it.launch, env={**it.launch.env, "STATUS": place.status_directory(it.directory)})
        before = datetime.now(UTC) - timedelta(seconds=1)
        assert last_checkpoint(it.directory, datetime.now(UTC)) is None
        assert await it.run() == Exit(code=0)
        at = last_checkpoint(it.directory, datetime.now(UTC))
        assert at is not None
        assert before <= at <= datetime.now(UTC)
