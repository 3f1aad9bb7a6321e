"""A coordinator has not loaded what only some fleets need; every start takes that much less time."""

import subprocess
import sys

from tests.house.generate_stubs import ROOT


def test_a_coordinator_without_an_identity_provider_loads_no_library_for_http() -> None:
    program = "import coordinator.__main__, coordinator.main, sys; print('aiohttp' in sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "False\n", "")
