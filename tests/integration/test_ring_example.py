"""The ring example finds its peers by the roster files alone: three processes, real sockets, no coordinator."""

import asyncio
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from socket import create_server

import pytest

from muster.domain.gangs.roster import Member, PortLease, Roster, config_files
from muster.domain.ids import JobId, NodeId, execution_id
from muster.domain.jobs.job import Network

RING = Path(__file__).parents[2] / "examples" / "ring" / "ring.py"
JOB = JobId("r1")
AT = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


def _free_ports(count: int) -> list[int]:
    """Ports that nobody has; all are held until the last is found, so that they differ."""
    listeners = [create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def _roster(size: int) -> Roster:
    ports = _free_ports(size)
    members = tuple(
        Member(
            rank=rank,
            execution=execution_id(JOB, 1, rank),
            role="worker",
            node=NodeId(f"node-{rank}"),
            address="127.0.0.1",
            checked_in_at=AT,
            ports=tuple(PortLease(name=name, host_port=port, container_port=port) for name in ("master", "ring")),
        )
        for rank, port in enumerate(ports)
    )
    return Roster.of(job=JOB, job_name="ring", attempt=1, network=Network.HOST, members=members)


async def _run(roster: Roster, ranks: Sequence[int], scratch: Path) -> list[tuple[int | None, str]]:
    """Exit code and output of each rank."""
    processes = []
    for rank in ranks:
        config = scratch / str(rank)
        config.mkdir()
        for name, content in config_files(roster, rank).items():
            (config / name).write_bytes(content)
        processes.append(
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-S", RING),
                env={"MUSTER_CONFIG_DIR": str(config)},
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            ),
        )
    outputs = [(await process.communicate())[0].decode() for process in processes]
    return [(process.returncode, output) for process, output in zip(processes, outputs, strict=True)]


@pytest.mark.parametrize("size", [1, 3])
async def test_every_rank_gets_the_sum(size: int, tmp_path: Path) -> None:
    ended = await _run(_roster(size), range(size), tmp_path)
    total = sum(range(1000)) * sum(range(1, size + 1))
    assert [(code, output.splitlines()[-1]) for code, output in ended] == [
        (0, f"rank {rank}: the sum over {size} ranks is right ({total})") for rank in range(size)
    ]


async def test_rank_0_prints_the_roster(tmp_path: Path) -> None:
    roster = _roster(2)
    ended = await _run(roster, range(2), tmp_path)
    port = {rank: roster.listened(rank)["ring"] for rank in range(2)}
    assert ended[0][1].splitlines()[:3] == [
        "the roster:",
        f"  rank 0 on node-0 at 127.0.0.1:{port[0]}",
        f"  rank 1 on node-1 at 127.0.0.1:{port[1]}",
    ]
