"""Machines of the tests have names that systemd-nspawn takes, whatever their scratch directories are called."""

from pathlib import Path

import pytest

from tests.machines.trees import machine_name


@pytest.mark.parametrize("directory", ["making-tree-2z67m_c3", "making-tree-2z67mc3_"])
def test_a_machine_has_no_underscore_and_no_dash_at_the_end(directory: str) -> None:
    name = machine_name(Path("/tmp", directory))
    assert "_" not in name
    assert not name.endswith("-")
