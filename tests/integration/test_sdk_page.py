"""docs/sdk.md and docs/roster.md: every program on them runs as it stands there."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from muster import Client, Credentials, JobPhase, JobSpec, Role
from tests.integration.programs import agent, coordinator
from tests.integration.relays import relay, until

ROOT = Path(__file__).parents[2]
PROGRAMS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "sdk.md").read_text(), re.DOTALL)
IN_A_JOB = [each for each in PROGRAMS if "worker.load()" in each]
OUTSIDE = [each for each in PROGRAMS if each not in IN_A_JOB]
SAID = {
    "SyncClient() as client:\n    job = client.jobs.submit(spec)": "succeeded",
    "SyncClient().open()": "['alone']",
    "asyncio.run(main())": "well",
    "load_job(": "hello would be accepted",
    "errors.InvalidJobError": "('roles', 0, 'count') must be",
    "submit_many": "5 jobs",
    "attachments.copy": "1 sent, 1 back: {}",
}
"""What each program prints, by what stands in it."""


def test_the_page_has_the_programs_that_are_tried_here() -> None:
    assert len(IN_A_JOB) == 1
    assert [sum(words in program for words in SAID) for program in OUTSIDE] == [1] * len(SAID)


@pytest.mark.parametrize(
    "program", OUTSIDE, ids=lambda each: next(words for words in SAID if words in each).split("(")[0]
)
async def test_a_program_of_the_page_runs(program: str, tmp_path: Path) -> None:
    ready = tmp_path / "relay-address"
    async with (
        coordinator(tmp_path) as login,
        agent(tmp_path, login),
        relay(tmp_path / "coordinator", "--ready-file", str(ready)),
    ):
        await until(ready.exists)
        own = {**os.environ, "MUSTER_COORDINATOR": login.address, "MUSTER_TOKEN": login.token or ""}
        running = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", program),
            env={**own, "PYTHONPATH": str(ROOT), "MUSTER_HOME": str(tmp_path / "home")},
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await running.communicate()
    assert running.returncode == 0, said.decode()
    (expected,) = (printed for words, printed in SAID.items() if words in program)
    assert expected in said.decode()


async def test_the_program_for_a_job_runs_in_one(tmp_path: Path) -> None:
    role = Role(command=(sys.executable, "-c", IN_A_JOB[0]), count=2, env={"PYTHONPATH": str(ROOT)})
    async with (
        coordinator(tmp_path) as login,
        agent(tmp_path, login),
        Client(login.address, Credentials(token=login.token)) as client,
    ):
        job = await client.jobs.submit(JobSpec(name="page", roles=(role,)), queue_anyway=True)
        ended = await client.jobs.wait(job)
        lines = [line.text.decode() async for line in client.jobs.logs(job)]
    assert ended.phase is JobPhase.SUCCEEDED, lines
    assert any(line.startswith("I listen at 127.0.0.1 on port") for line in lines)
    assert any(line.startswith("I connect to 127.0.0.1 on port") for line in lines)
