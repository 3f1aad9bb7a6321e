"""What is not loaded by the commands that are started again and again: each of these takes as long as a small gang."""

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from muster.domain.ids import JobId
from muster.domain.jobs.lifecycle import JobPhase, State
from muster.rpc.v1 import jobs_pb2
from tests.integration.canned_coordinator import Canned, serving
from tests.unit.cli import values
from tests.unit.cli.values import attempt, execution, line

HEAVY = {
    "_bz2",
    "_decimal",
    "_lzma",
    "_ssl",
    "cryptography",
    "google.protobuf.text_format",
    "pydantic",
    "rich",
    "ruamel",
}
OF_OTHERS = {
    f"muster.{name}" for name in ("domain.explanation", "domain.fence", "domain.node", "domain.secret", "spec.load")
}
"""Modules of ours; each class that is a value takes half a millisecond to make."""
JOB = replace(
    values.job(JobPhase.SUCCEEDED, attempt(execution(0, State.SUCCEEDED)), started=1, ended=3), id=JobId("new1")
)

SUBMITTING = """
import asyncio, sys
from muster.client.client import Client
from muster.domain.errors import InvalidJobError
from muster.domain.jobs.job import JobSpec, Role

async def main():
    async with Client() as client:
        try:
            await client.jobs.submit(JobSpec(name="a", roles=(Role(command=("true",)),)))
        except InvalidJobError:
            pass

asyncio.run(main())
print(*sys.modules)
"""


@pytest.mark.parametrize(
    "words",
    [("run", "-N", "2", "--", "true"), ("jobs",), ("logs", "new1"), ("wait", "new1"), ("stop", "new1")],
    ids=" ".join,
)
def test_a_command_that_is_started_often_loads_no_heavy_library(words: Sequence[str]) -> None:
    loaded = loaded_by(*words)

    assert {"grpc", "muster.client.client"} <= loaded
    assert (HEAVY | OF_OTHERS) & loaded == set()


def test_a_plain_job_file_is_read_without_what_tells_what_is_wrong_with_others(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: a\nworkers: 2\ncommand: [echo, a]\nresources: {cpus: 0.1}\n")
    loaded = loaded_by("submit", str(file))

    assert {"grpc", "ruamel.yaml", "muster.jobfile.plain"} <= loaded
    assert {"pydantic", "muster.jobfile.models"} & loaded == set()


def test_a_job_is_asked_for_before_what_reads_the_answer_is_loaded() -> None:
    refusing = Canned(refusals=[(grpc.StatusCode.INVALID_ARGUMENT, "no")])
    loaded = set(ended(refusing, "-c", SUBMITTING).stdout.split())

    assert len(refusing.asked_for(jobs_pb2.SubmitRequest)) == 1
    assert "muster.wire.specs" in loaded
    assert {"muster.wire.jobs", "muster.domain.jobs.view"} & loaded == set()


def loaded_by(*words: str) -> set[str]:
    """The modules that a command loads."""
    canned = Canned(jobs=[JOB], watches=[[JOB]], logs=[[line(b"hello\n")]])
    done = ended(canned, "-X", "importtime", "-c", "from muster.cli.main import main; main()", *words)
    return set(re.findall(r"^import time: .*\| +(\S+)$", done.stderr, flags=re.MULTILINE))


def ended(canned: Canned, *words: str) -> "subprocess.CompletedProcess[str]":
    """Python, which asks such a coordinator, once it has ended well."""
    with serving(canned) as address:
        done = subprocess.run(
            [sys.executable, *words],
            env={**os.environ, "MUSTER_COORDINATOR": address, "MUSTER_HOME": "/nowhere"},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert done.returncode == 0
    return done
