"""Runs a job of three ranks on three nodes and keeps what is told of it: `make story` writes it into docs/events.md."""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from muster.client.client import Client
from muster.domain.jobs.lifecycle import JobPhase
from muster.rpc.channel import Credentials
from tests.integration.jobs import shell
from tests.integration.programs import ROOT, coordinator_program

PAGE = ROOT / "docs" / "events.md"
NODES, RANKS = 3, 3
PORTS = "30200-30259"
WITHIN = 60.0
SCRIPT = "sleep 0.3; echo rank $MUSTER_RANK of $MUSTER_WORLD_SIZE"
ABOUT_JOBS = re.compile(r" (info|debug) (jobs? |attempt |executions? |another attempt )")
TIMES = re.compile(r"^\S+Z ", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What was told of one job."""

    coordinator: str
    """Lines of the coordinator's journal about the job."""
    agent: str
    """Lines of the agent's journal about the job."""
    events: str
    """What `muster events` printed."""

    def blocks(self) -> dict[str, str]:
        """What stands in each block of the page."""
        return {"coordinator": self.coordinator, "agent": self.agent, "events": f"$ muster events hello\n{self.events}"}


async def told(directory: Path) -> Story:
    """Run the job; what coordinator, agent and `muster events` tell of it."""
    async with coordinator_program(directory) as running:
        address, token = running.login.address, str(running.login.token)
        agent = await _agent(directory, address)
        try:
            async with Client(address, Credentials(token=token)) as client, asyncio.timeout(WITHIN):
                for _ in range(NODES):
                    await running.says(b"node connected")
                job = await client.jobs.submit(shell(SCRIPT, workers=RANKS, name="hello", max_per_node=1))
                ended = await client.jobs.wait(job.id)
                assert ended.phase is JobPhase.SUCCEEDED, ended
                events = await asyncio.to_thread(_events, address, token)
                await client.jobs.delete(job.id)  # so that nothing more is said of it
                logged = await _up_to(agent, "execution cleared away", RANKS)
        finally:
            agent.terminate()
            await agent.communicate()
        journal = await running.says(b"job was deleted")
    return Story(coordinator=_about_jobs(journal), agent=_about_jobs(logged), events=events)


def pasted(page: str, story: Story) -> str:
    """The page with another story in its blocks."""
    for name, text in story.blocks().items():
        block = re.compile(rf"(<!-- {name} -->\n```\w*\n).*?(```\n)", re.DOTALL)
        assert block.search(page), f"{PAGE.name} has no block <!-- {name} -->"
        page = block.sub(lambda found, text=text: found[1] + text + found[2], page)  # type: ignore[misc]  # mypy infers no lambda with a default
    return page


def block_of(page: str, name: str) -> str:
    """What stands in a block of the page."""
    found = re.search(rf"<!-- {name} -->\n```\w*\n(.*?)```\n", page, re.DOTALL)
    assert found is not None, f"{PAGE.name} has no block <!-- {name} -->"
    return found[1]


async def _agent(directory: Path, address: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agent", "--coordinator", address, "--local-nodes", str(NODES)),
        *("--token-file", str(directory / "coordinator" / "local-token"), "--state", str(directory / "nodes")),
        *("--ports", PORTS, "--gpu-provider", "fake:3xH100", "--no-docker", "--processes", "--job-user", "none"),
        cwd=ROOT,
        stderr=asyncio.subprocess.PIPE,
    )


async def _up_to(agent: asyncio.subprocess.Process, words: str, times: int) -> bytes:
    """All that an agent logs up to the line with which it has said this so many times."""
    assert agent.stderr is not None
    lines: list[bytes] = []
    while sum(words.encode() in line for line in lines) < times:
        line = await agent.stderr.readline()
        assert line, b"".join(lines).decode()
        lines.append(line)
    return b"".join(lines)


def _events(address: str, token: str) -> str:
    muster = Path(sys.executable).with_name("muster")
    known = {**os.environ, "MUSTER_COORDINATOR": address, "MUSTER_TOKEN": token, "TZ": "UTC"}
    return subprocess.run(
        [muster, "events", "hello"], env=known, cwd=ROOT, text=True, capture_output=True, check=True, timeout=WITHIN
    ).stdout


def _about_jobs(journal: bytes) -> str:
    lines = [line for line in journal.decode().splitlines() if ABOUT_JOBS.search(line)]
    return "".join(f"{line}\n" for line in lines if "job was deleted" not in line)


def main() -> None:
    """Write the page anew."""
    with tempfile.TemporaryDirectory() as directory:
        story = asyncio.run(told(Path(directory)))
    PAGE.write_text(pasted(PAGE.read_text(), story))


if __name__ == "__main__":
    main()
