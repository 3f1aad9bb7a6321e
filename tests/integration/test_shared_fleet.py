"""The fleet that several tests share ends with them, whatever goes wrong before they begin."""

from pathlib import Path

import pytest

from tests.integration.ssh_hosts import shared_fleet


def test_a_fleet_that_takes_too_long_to_start_is_ended_and_nobody_waits_for_it(tmp_path: Path) -> None:
    with pytest.raises(TimeoutError), shared_fleet(tmp_path, ready_within=0.01):
        pass
