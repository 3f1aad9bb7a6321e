"""What an agent leaves on disk for killers and for the agent after it."""

from pathlib import Path

import pytest

from agent.core.deadlines import Notes
from agent.fencing.deadlines import read_notes, write_notes
from agent.fencing.guard import FenceGuard, FenceSite
from agent.fencing.killer import Killer
from agent.runtimes.kernel.pids import boot_id
from muster.domain.ids import NodeId


@pytest.mark.parametrize("boot", [boot_id(), "the one before"])
async def test_a_new_agent_has_noted_that_it_is_there_before_anything_runs(tmp_path: Path, boot: str) -> None:
    """Else its killer would take what the agent before it has noted for the word of one after it, and watch no more."""
    write_notes(tmp_path, Notes(boot=boot, agent="the one before"))
    killer = Killer()
    site = FenceSite(node=NodeId("n"), state=tmp_path, executions=tmp_path / "executions", outputs=tmp_path / "outputs")
    await FenceGuard(site, killer).begin({})
    assert read_notes(tmp_path) == Notes(boot=boot_id(), agent=killer.name)
