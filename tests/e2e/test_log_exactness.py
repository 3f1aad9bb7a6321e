"""What is printed is what the coordinator has in the end, byte for byte, however often the agent is killed."""

import operator
import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from muster.domain.gangs.log import Stream, parse_records
from tests.e2e.deployment import Deployment
from tests.e2e.waiting import until

KILLS = 10
SEED = 3

MOST = 15_000
"""Bytes of each log that reach the coordinator between a start and a kill, at most."""

CHATTY = """
n=0
say() { echo "$1"; echo "$1" >> "$COPIES/$RANK.stdout"; echo "$1 too" >&2; echo "$1 too" >> "$COPIES/$RANK.stderr"; }
while [ ! -e "$COPIES/enough" ]; do
  n=$((n + 1))
  say "line $n ........................................................................"
  [ $((n % 20)) = 0 ] && sleep 0.02
done
say "the last line"
"""


@pytest.mark.fleet
def test_an_agent_that_is_killed_ten_times_loses_and_doubles_nothing(muster: Deployment) -> None:
    chance, copies = random.Random(SEED), muster.shared("copies")
    node, start = muster.fleet.nodes[0], ("--processes", "--gpu-provider", "fake:1xH100")
    muster.start_agent(node, *start)
    muster.await_nodes(1)
    job = muster.submit(_job(copies))
    muster.await_states(job, ["running"] * 2)
    logs = [muster.directory / f"coordinator/logs/{job}/1-{rank}.cri" for rank in range(2)]

    for _ in range(KILLS):
        _await_growth(logs, [chance.randint(0, MOST) for _ in logs])
        muster.agents[node.name].kill()
        muster.start_agent(node, *start)

    (copies / "enough").touch()
    shown = muster.ended(job)
    assert (len(shown["attempts"]), shown["phase"]) == (1, "succeeded")
    muster.log_lines(job)  # which ends when the logs are complete
    for rank, log in enumerate(logs):
        records = parse_records(log.read_bytes())
        for stream in Stream:
            printed = b"".join(
                record.text + b"\n" * (not record.partial) for record in records if record.stream is stream
            )
            assert printed == (copies / f"{rank}.{stream}").read_bytes()
            assert printed.endswith(b"the last line too\n" if stream is Stream.STDERR else b"the last line\n")


def _job(copies: Path) -> dict[str, object]:
    """A container and a process."""
    command = ["/bin/sh", "-c", CHATTY]
    return {
        "name": "chatty",
        "env": {"COPIES": str(copies)},
        "roles": [
            {
                "name": "boxed",
                "image": "muster/busybox:latest",
                "pull": "never",
                "command": command,
                "mounts": [f"{copies}:{copies}:rw"],
            },
            {"name": "plain", "command": command},
        ],
    }


def _await_growth(logs: Sequence[Path], growth: Sequence[int]) -> None:
    wanted = [_size(log) + more for log, more in zip(logs, growth, strict=True)]
    until(lambda: all(map(operator.ge, map(_size, logs), wanted)), within=60, what="output at the coordinator")


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0
