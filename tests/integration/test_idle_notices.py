"""Whoever is attached hears that the job is about to be stopped because nobody uses it, and nobody else does."""

import asyncio
import os
import re
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from muster.domain.fleet.quota import UnitChange
from muster.domain.jobs.job import Timeouts
from muster.domain.jobs.lifecycle import JobPhase
from muster.trust.files import read_secret
from tests.integration.attaching import SLEEPER, WITHIN, AttachingFleet, attaching_fleet, command, ended
from tests.integration.programs import ROOT

UNUSED = replace(SLEEPER, name="unused", timeouts=Timeouts(idle=timedelta(seconds=10)))
SENTENCE = r"unused stops at \d\d:\d\d:\d\d UTC unless it is used before \(timeouts\.idle: 10s\)"


async def test_each_who_is_attached_hears_it_once_and_those_of_another_job_hear_nothing(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        job, other = await fleet.running(UNUSED), await fleet.running(replace(SLEEPER, name="other"))
        heard: dict[str, list[str]] = {"one": [], "two": [], "elsewhere": []}
        opened = fleet.client.attachments.open
        async with (
            asyncio.timeout(WITHIN),
            await opened(job.id, command("sleep", "600"), on_notice=heard["one"].append) as one,
            await opened(job.id, command("sleep", "600"), on_notice=heard["two"].append) as two,
            await opened(other.id, command("sleep", "600"), on_notice=heard["elsewhere"].append) as elsewhere,
        ):
            listening = asyncio.create_task(ended(elsewhere))
            await asyncio.gather(ended(one), ended(two))
            listening.cancel()

        [text] = heard["one"]
        assert re.fullmatch(SENTENCE, text)
        assert heard == {"one": [text], "two": [text], "elsewhere": []}
        assert (await fleet.client.jobs.wait(job.id)).phase is JobPhase.STOPPED


async def test_a_job_that_says_nothing_of_it_is_stopped_by_the_terms_of_its_project(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet:
        [before] = [each.unit for each in await fleet.client.projects.quotas()]
        terms = before.terms.with_pool("", replace(before.terms.everywhere, idle=timedelta(seconds=10)))
        change = UnitChange(before=before, after=replace(before, terms=terms))
        await fleet.client.projects.set_quotas([change])
        job = await fleet.running(replace(SLEEPER, name="unused"))
        async with asyncio.timeout(WITHIN):
            ended_as = await fleet.client.jobs.wait(job.id)
        told = [event.text async for event in fleet.client.jobs.events(job.id)]

    assert (ended_as.phase, ended_as.summary) == (JobPhase.STOPPED, "stopped: idle for 10s")
    assert any("(idle of project default: 10s)" in text for text in told)


async def test_it_is_told_again_when_a_use_has_put_the_end_off(tmp_path: Path) -> None:
    async with attaching_fleet(tmp_path) as fleet, asyncio.timeout(WITHIN):
        job = await fleet.running(UNUSED)
        heard: asyncio.Queue[str] = asyncio.Queue()
        reading = command("cat", has_input=True)
        async with await fleet.client.attachments.open(job.id, reading, on_notice=heard.put_nowait) as attachment:
            listening = asyncio.create_task(ended(attachment))
            first = await heard.get()
            assert (await fleet.client.attachments.run(job.id, ["echo", "used"])).output == b"used\n"
            second = await heard.get()
            listening.cancel()

        assert re.fullmatch(SENTENCE, second)
        assert first < second


@pytest.mark.parametrize(
    "words", [("exec", "unused", "--", "sleep", "600"), ("exec", "unused", "--all", "--", "sleep", "600")]
)
async def test_the_command_line_tells_it_on_stderr(tmp_path: Path, words: tuple[str, ...]) -> None:
    async with attaching_fleet(tmp_path) as fleet, asyncio.timeout(WITHIN):
        gang = replace(UNUSED, roles=(replace(UNUSED.roles[0], count=2),))
        await fleet.running(gang)

        assert len(re.findall(rf"\[muster: {SENTENCE}\]\n", await _stderr(fleet, *words))) == 1


async def _stderr(fleet: AttachingFleet, *words: str) -> str:
    """What a command says on stderr up to its end."""
    shown = {
        "MUSTER_COORDINATOR": fleet.address,
        "MUSTER_TOKEN": read_secret(fleet.state / "local-token"),
        "PATH": os.environ["PATH"],
    }
    program = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "muster", *words),
        cwd=ROOT,
        env=shown,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await program.communicate()
    return said.decode()
