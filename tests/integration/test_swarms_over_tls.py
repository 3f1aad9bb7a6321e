"""Agents of a fleet with TLS whose jobs want the same: the depot gives it once, and they give each other its pieces."""

import asyncio
import random
import re
from contextlib import AsyncExitStack
from hashlib import sha256
from pathlib import Path

from muster.client.client import Client
from muster.domain.data.code import JobCode
from muster.domain.data.job_input import JobInput
from muster.domain.fleet.access import Access
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec, Resources, Role
from muster.domain.jobs.lifecycle import JobPhase
from muster.domain.jobs.restart import RestartPolicy
from tests.integration.secured import joining, secured, until_ready

LIMIT = 120.0
NODES = ("gpu-1", "gpu-2")
LARGE = random.Random(1).randbytes(3 * 1024 * 1024 + 7)
PRINTED = sha256(LARGE).hexdigest().encode()
GATHERED = re.compile(r"objects gathered .*?bytes=(\d+).*?from_peers=(\d+)")


def gang(name: str, script: str, code: JobCode | None = None, *inputs: JobInput) -> JobSpec:
    """A job with an execution on each of two nodes."""
    command = ("/bin/sh", "-c", script)
    role = Role(count=2, command=command, code=code, inputs=inputs, resources=Resources(cpu_millis=100))
    return JobSpec(
        name=name, project="vision", roles=(role,), max_per_node=1, restarts=RestartPolicy(limit=1, infrastructure=0)
    )


async def printed(client: Client, spec: JobSpec) -> tuple[JobId, list[bytes]]:
    """What the executions of a job print that succeeds."""
    submitted = await client.jobs.submit(await client.data.with_code(spec))
    ended = await client.jobs.wait(submitted.id)
    assert ended.phase is JobPhase.SUCCEEDED, ended
    return ended.id, [line.text async for line in client.jobs.logs(ended.id)]


def gathered(directory: Path) -> list[tuple[int, int]]:
    """Bytes of all that nodes have gathered one after the other, and how many of them came to all from the depot."""
    found = [GATHERED.findall((directory / f"{node}.log").read_text()) for node in NODES]
    return [
        (int(several[0][0]), sum(int(total) - int(from_peers) for total, from_peers in several))
        for several in zip(*found, strict=True)
    ]


async def test_code_and_outputs_of_other_jobs_leave_the_depot_once_for_two_nodes(tmp_path: Path) -> None:
    folder, directory = tmp_path / "trainer", tmp_path / "fleet"
    folder.mkdir()
    (folder / "large").write_bytes(LARGE)
    async with asyncio.timeout(LIMIT), secured(directory, beside=("depot",)) as fleet, AsyncExitStack() as agents:
        for node in NODES:
            await agents.enter_async_context(joining(fleet, node, await fleet.join_token()))
        async with fleet.client() as admin:
            await until_ready(admin, *NODES)
        async with fleet.client(await fleet.user("anna", {"vision": Access.MEMBER})) as client:
            leaves = 'sha256sum < large | cut -c -64; cp large "$MUSTER_OUTPUTS_DIR"'
            first, from_code = await printed(client, gang("first", leaves, JobCode(folder=str(folder))))
            reads = 'sha256sum < "$MUSTER_INPUTS_DIR/base/large" | cut -c -64'
            base = JobInput(name="base", source=f"job:{first}/worker-0")
            _, from_outputs = await printed(client, gang("second", reads, None, base))
    assert (from_code, from_outputs) == ([PRINTED] * 2, [PRINTED] * 2)
    assert [total for total, _ in gathered(directory)] == [len(LARGE)] * 2
    assert all(from_depot <= 1.05 * total for total, from_depot in gathered(directory))
