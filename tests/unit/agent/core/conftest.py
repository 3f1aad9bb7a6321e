"""What tests of this folder share."""

from pathlib import Path

import pytest

from tests.unit.agent.core.slurm_job import SHELLS, SlurmJob


@pytest.fixture(params=SHELLS, ids=" ".join)
def slurm(request: pytest.FixtureRequest, tmp_path: Path) -> SlurmJob:
    """Three executions with two processes each, under each shell that an image may have as /bin/sh."""
    return SlurmJob(tmp_path, request.param, "2(x3)")
