"""Windows on real programs, from the command line to the nodes."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from muster.domain.fleet.window import Window
from muster.domain.ids import NodeId
from muster.domain.jobs.lifecycle import JobPhase
from tests.integration.fleet import executions, running_fleet
from tests.integration.jobs import shell


async def test_jobs_take_nodes_outside_of_windows_and_go_on_once_one_is_removed(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    window = Window(name="disks", nodes=(NodeId("a"),), begins=now, ends=now + timedelta(days=1), reason="new disks")
    async with running_fleet(tmp_path, "a", "b") as fleet:
        assert await fleet.client.windows.put(window) == window
        elsewhere = await fleet.run(shell("true"))
        gang = await fleet.client.jobs.submit(shell("true", 2, max_per_node=1))
        why = await fleet.client.jobs.why(gang.id)
        await fleet.restart_coordinator()
        kept = await fleet.client.windows.list()
        assert await fleet.client.windows.remove("disks") == window
        ended = await fleet.client.jobs.wait(gang.id)
        told = [event.sentence async for event in fleet.client.fleet.events()]

    assert executions(elsewhere)[0].node == "b"
    [closed] = [refusal.reason for refusal in why.refusals if refusal.node == "a"]
    assert closed.startswith("is out of service until ")
    assert kept == (window,)
    assert ended.phase is JobPhase.SUCCEEDED
    assert "window was removed: disks" in told
