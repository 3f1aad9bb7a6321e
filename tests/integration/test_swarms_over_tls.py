"""Agents of a fleet with TLS whose jobs want the same: the depot gives it once, and they give each other its pieces."""

import asyncio
import random
import re
from collections import Counter
from contextlib import AsyncExitStack
from hashlib import sha256
from pathlib import Path

from muster.client.client import Client
from muster.domain.data.checkpoint import CheckpointRanks, JobCheckpoint
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
GATHERED = re.compile(r"objects gathered .*?bytes=(\d+).*?from_peers=(\d+)")

LEAVES = 'sha256sum < large; cat large large > "$MUSTER_OUTPUTS_DIR/twice"'
READS = 'sha256sum < "$MUSTER_INPUTS_DIR/base/twice"'
SAVES = """
    folder=$PWD; cd "$MUSTER_CHECKPOINT_DIR"
    [ "$MUSTER_ATTEMPT" = 2 ] && exec sha256sum < step/weights
    [ "$MUSTER_RANK" = 0 ] || exec sleep 60
    mkdir step.tmp; for each in 1 2 3; do cat "$folder/large"; done > step.tmp/weights
    touch .step.finished; mv step.tmp step; exit 1
"""


def gang(name: str, script: str, code: JobCode | None = None, *inputs: JobInput) -> JobSpec:
    """A job with an execution on each of two nodes."""
    command = ("/bin/sh", "-c", script)
    role = Role(
        count=2,
        command=command,
        code=code,
        inputs=inputs,
        checkpoint=JobCheckpoint(ranks=CheckpointRanks.RANK0),
        resources=Resources(cpu_millis=100),
    )
    again = RestartPolicy(limit=1, infrastructure=0)
    return JobSpec(name=name, project="vision", roles=(role,), max_per_node=1, restarts=again)


async def printed(client: Client, spec: JobSpec) -> tuple[JobId, list[bytes]]:
    """What the executions of a job print that succeeds."""
    submitted = await client.jobs.submit(await client.data.with_code(spec))
    ended = await client.jobs.wait(submitted.id)
    assert ended.phase is JobPhase.SUCCEEDED, ended
    return ended.id, [line.text async for line in client.jobs.logs(ended.id)]


def hashed(content: bytes) -> bytes:
    """What `sha256sum` prints of it."""
    return f"{sha256(content).hexdigest()}  -".encode()


def gathered(directory: Path) -> dict[int, int]:
    """How many bytes came from the depot of all contents that nodes have gathered, by the bytes of these contents."""
    found: Counter[int] = Counter()
    for node in NODES:
        for total, from_peers in GATHERED.findall((directory / f"{node}.log").read_text()):
            found[int(total)] += int(total) - int(from_peers)
    return found


async def test_code_outputs_and_checkpoints_leave_the_depot_at_most_once_for_two_nodes(tmp_path: Path) -> None:
    folder, directory = tmp_path / "trainer", tmp_path / "fleet"
    folder.mkdir()
    (folder / "large").write_bytes(LARGE)
    async with asyncio.timeout(LIMIT), secured(directory, beside=("depot",)) as fleet, AsyncExitStack() as agents:
        for node in NODES:
            await agents.enter_async_context(joining(fleet, node, await fleet.join_token()))
        async with fleet.client() as admin:
            await until_ready(admin, *NODES)
        async with fleet.client(await fleet.user("anna", {"vision": Access.MEMBER})) as client:
            code = JobCode(folder=str(folder))
            left, of_code = await printed(client, gang("first", LEAVES, code))
            base = JobInput(name="base", source=f"job:{left}/worker-0")
            _, of_outputs = await printed(client, gang("second", READS, None, base))
            _, of_checkpoint = await printed(client, gang("third", SAVES, code))
    size = len(LARGE)
    assert (of_code, of_outputs) == ([hashed(LARGE)] * 2, [hashed(LARGE * 2)] * 2)
    assert of_checkpoint == [hashed(LARGE * 3)] * 2
    from_depot = gathered(directory)
    assert set(from_depot) == {size, 2 * size, 3 * size}
    assert all(came <= 1.05 * total for total, came in from_depot.items())
