"""What the command line advises after a job has failed."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from muster.domain.ids import JobId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.lifecycle import JobPhase
from tests.integration.canned_coordinator import Canned, serving
from tests.integration.command_line import Muster
from tests.unit.cli import values

MISSING = replace(values.EXIT_3, exit=Exit(code=2))
FAILED = replace(values.job(JobPhase.FAILED, started=1, ended=3, failure=MISSING), id=JobId("new1"))


@pytest.fixture
def muster() -> Iterator[Muster]:
    canned = Canned()
    with serving(canned) as address:
        yield Muster(canned, address)


def test_a_program_that_was_not_sent_along_is_hinted_at(muster: Muster, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text("name: ring\ncommand: python3 ring.py\n")
    (tmp_path / "ring.py").touch()
    muster.canned.watches = [[FAILED]]

    done = muster("submit", str(file), "--follow")

    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1].startswith(
        "hint: the file ring.py is here, and no execution got it; `files:` of"
    )
