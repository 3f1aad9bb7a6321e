"""A short soak: what `make soak` does for hours, for minutes."""

import os
import subprocess
import sys

from tests.integration.programs import ROOT

MINUTES = float(os.environ.get("MUSTER_SOAK_MINUTES", "2"))
BESIDE = 180.0
"""Seconds for starting and ending the programs."""


def test_a_coordinator_under_attack_goes_on_serving_its_admin() -> None:
    soak = subprocess.run(
        [sys.executable, "-m", "tests.soak", "--minutes", str(MINUTES)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60 * MINUTES + BESIDE,
        check=False,
    )

    assert soak.returncode == 0, f"{soak.stdout}\n{soak.stderr[-4000:]}"
    assert soak.stdout.splitlines()[-1].startswith("held for")
