"""From submit to the first instruction of every worker: Muster beside a bare spawn of the same program.

    python bench/launch.py [--sizes 1,3,8] [--repeats 20] [-o json]

Starts a coordinator and one agent process with as many local nodes as the largest size, submits through one connected
client, and takes the workers' own clocks: every worker is `date +%s%N`, started without a shell, once the roster is
written and all have checked in. The peer spawns the same program as often from one Python process, with pipes, and
does nothing else. Both are measured in turn, in the same run, on this machine.
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from muster.client import Client
from muster.domain.job import JobSpec, Packing, Resources, Role
from muster.domain.node import NodeState
from muster.rpc.channel import Credentials
from muster.trust.files import read_secret

PROGRAM = ("/bin/date", "+%s%N")
READY_WITHIN = 30.0


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="1,3,8", help="numbers of executions (%(default)s)")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("-o", "--output", choices=["table", "json"], default="table")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    async with fleet(max(sizes)) as client:
        rows = [await compare(client, size, options.repeats) for size in sizes]
    if options.output == "json":
        print(json.dumps(rows, indent=2))
        return
    print(f"{'executions':>10}  {'muster ms: min median p90':>28}  {'bare spawn ms: min median p90':>30}")
    for row in rows:
        ours, bare = row["muster_ms"], row["bare_ms"]
        shown = [f"{each['min']:.1f} {each['median']:.1f} {each['p90']:.1f}" for each in (ours, bare)]
        print(f"{row['executions']:>10}  {shown[0]:>28}  {shown[1]:>30}")


async def compare(client: Client, size: int, repeats: int) -> dict[str, object]:
    """Both ways in turn, as often as asked, after one of each to warm up."""
    ours, bare = [], []
    for turn in range(repeats + 1):
        measured = await launch(client, size), await spawn(size)
        if turn:
            ours.append(measured[0])
            bare.append(measured[1])
    return {"executions": size, "repeats": repeats, "muster_ms": spread(ours), "bare_ms": spread(bare)}


async def launch(client: Client, size: int) -> float:
    """Milliseconds from submit to the first instruction of the last worker."""
    role = Role(count=size, command=PROGRAM, resources=Resources(cpu_millis=100))
    begun = time.time_ns()
    job = await client.submit(JobSpec(name="launch", packing=Packing.SPREAD, roles=(role,)))
    stamps = [int(line.text) async for line in client.logs(job.id, follow=True)]
    if len(stamps) != size:
        sys.exit(f"{len(stamps)} of {size} workers printed: see `muster show {job.id}`")
    return (max(stamps) - begun) / 1e6


async def spawn(size: int) -> float:
    """The same without Muster."""
    begun = time.time_ns()
    workers = [await asyncio.create_subprocess_exec(*PROGRAM, stdout=subprocess.PIPE) for _ in range(size)]
    printed = [await worker.communicate() for worker in workers]
    return (max(int(output) for output, _ in printed) - begun) / 1e6


def spread(values: list[float]) -> dict[str, float]:
    """What a row shows of several runs."""
    ordered = sorted(values)
    return {"min": ordered[0], "median": statistics.median(ordered), "p90": ordered[int(len(ordered) * 0.9) - 1]}


@asynccontextmanager
async def fleet(nodes: int) -> AsyncIterator[Client]:
    """A coordinator and an agent in processes of their own, and a client that is connected."""
    with tempfile.TemporaryDirectory() as directory:
        state = Path(directory)
        ready = state / "address"
        coordinator = _start(
            "coordinator", "--state", state / "c", "--local", "--listen", "127.0.0.1:0", "--ready-file", ready
        )
        agent: subprocess.Popen[bytes] | None = None
        try:
            async with asyncio.timeout(READY_WITHIN):
                while not ready.exists():
                    await asyncio.sleep(0.05)
                address = ready.read_text().strip()
                token = state / "c" / "local-token"
                shown = Credentials(token=read_secret(token))
                agent = _start(
                    "agent",
                    "--token-file",
                    token,
                    "--coordinator",
                    address,
                    "--local-nodes",
                    nodes,
                    "--state",
                    state / "a",
                    "--no-docker",
                )
                async with Client(address, shown) as client:
                    while sum(node.state is NodeState.READY for node in await client.nodes()) < nodes:
                        await asyncio.sleep(0.05)
            async with Client(address, shown) as client:
                yield client
        finally:
            for process in (agent, coordinator):
                if process is not None:
                    process.terminate()
                    process.wait(READY_WITHIN)


def _start(module: str, *arguments: object) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", module, "--log-level", "warning", *map(str, arguments)]
    return subprocess.Popen(command)


if __name__ == "__main__":
    asyncio.run(main())
