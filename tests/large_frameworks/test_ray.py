"""A job is a cluster of Ray: its command runs once, on rank 0, when all nodes have joined."""

import os
from dataclasses import replace
from pathlib import Path

from muster.domain.jobs.frameworks.framework import Framework, FrameworkName
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.rules.filling_in import filled_in
from tests.frameworks.environments import interpreter
from tests.frameworks.recipes import recipe
from tests.integration.fleet import running_fleet
from tests.integration.jobs import command

PROGRAM = Path(__file__).with_name("programs") / "ray_addresses.py"
RAY = Framework(name=FrameworkName.RAY)


def path() -> dict[str, str]:
    return {"PATH": f"{interpreter('ray').parent}:{os.defpath}"}


async def test_tasks_run_on_every_node_and_all_ends_with_the_command(tmp_path: Path) -> None:
    spec = replace(recipe("Ray", "train.py", str(PROGRAM), path=path()["PATH"]), max_per_node=1)
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.run(spec)
        printed = await fleet.texts(job.id, follow=True)
        assert job.phase is JobPhase.SUCCEEDED, (job.summary, printed)
        assert printed[-1] == "0 2 nodes, tasks on 127.0.0.2 127.0.0.3"


async def test_nobody_is_let_in_without_the_token_and_the_code_is_that_of_the_command(tmp_path: Path) -> None:
    script = (
        "ask() { timeout 20 ray status >/dev/null 2>&1 && echo let in || echo refused; }\n"
        'echo "$RAY_AUTH_TOKEN $(ask) $(RAY_AUTH_TOKEN=$(printf %064d 0) ask)"; exit 7'
    )
    spec = filled_in(command("/bin/sh", "-c", script, workers=2, max_per_node=1, framework=RAY, env=path()))
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.run(spec)
        printed = await fleet.texts(job.id, follow=True)
        assert (job.phase, job.failure and job.failure.exit and job.failure.exit.code) == (JobPhase.FAILED, 7), printed
        assert "0 *** let in refused" in printed
