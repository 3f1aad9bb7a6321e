"""Volumes on a fleet with Docker: found where the job says, in memory and on disk, and gone with the containers."""

import json
import re
from pathlib import Path

import pytest

from tests.e2e.deployment import Deployment
from tests.e2e.waiting import until

pytestmark = pytest.mark.fleet

USED = """
id -u; stat -c '%u %a' /fast
echo disk > /scratch/file && cat /scratch/file
echo memory > /fast/file && cat /fast/file
[ "$MUSTER_VOLUME_FAST" = /fast ] && [ "$MUSTER_VOLUME_OTHER" = /muster/volumes/other ] && touch /muster/volumes/other/a
echo found $?
"""


def test_containers_find_their_volumes_and_nothing_of_them_is_left(muster: Deployment) -> None:
    [node, *_] = muster.fleet.nodes
    muster.start_agent(node)
    muster.await_nodes(1)
    job = muster.submit(
        {
            "name": "voluminous",
            "image": "muster/busybox:latest",
            "pull": "never",
            "command": ["sh", "-c", USED],
            "volumes": {
                "scratch": {"path": "/scratch", "size": "1Mi"},
                "fast": {"path": "/fast", "tmpfs": "4Mi"},
                "other": {"size": "1Mi"},
            },
        },
    )
    assert muster.ended(job)["phase"] == "succeeded"
    printed = muster.run("logs", job).out
    for line in ("65534 700", "disk", "memory", "found 0"):
        assert line in printed
    until(lambda: not muster.containers(), within=20, what="the last container to go")
    until(lambda: not left_of_volumes(muster.directory), within=20, what="the volumes to go")


def test_a_container_that_writes_too_much_is_ended_and_told_why(muster: Deployment) -> None:
    [node, *_] = muster.fleet.nodes
    muster.start_agent(node)
    muster.await_nodes(1)
    job = muster.submit(
        {
            "name": "greedy",
            "image": "muster/busybox:latest",
            "pull": "never",
            "command": ["sh", "-c", "dd if=/dev/zero of=/scratch/a bs=1M count=4; sleep 600"],
            "volumes": {"scratch": {"path": "/scratch", "size": "1Mi"}},
        },
    )
    ended = muster.ended(job)
    assert ended["phase"] == "failed"
    said = r"the volume scratch holds [2-4]\.\d MiB; its size is 1\.0 MiB"  # it may be looked at while it is written
    assert re.search(said, json.dumps(ended))


def left_of_volumes(directory: Path) -> list[Path]:
    return [path for path in directory.glob("**/volumes/scratch/*/*") if path.exists()]
